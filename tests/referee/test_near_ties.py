"""Places that change where scores almost tie are no mistake, however seldom a change of the inputs turns them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from cudal1_core.referee.checks import Comparison
from cudal1_core.referee.drawing import Draw
from cudal1_core.referee.layout import describe
from cudal1_core.referee.runner import FaultError, Runner
from cudal1_core.referee.truth import Truth
from torch import nn

GAP = 2.0**-17  # between two scores, of their size: a change of the inputs by 6 last bits turns one pair in eight
ROWS, PAIRS = 64, 6


class Order(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.argsort(x)


class Place:
    """What a comparison asks of a runner: where the outputs of a slot lie."""

    def __init__(self, output: torch.Tensor) -> None:
        self.output = output

    def output_views(self, _slot: int) -> list[torch.Tensor]:
        return [self.output]


def compared(got: torch.Tensor, want: torch.Tensor, scores: torch.Tensor, seed: int) -> Comparison:
    truth = Truth(Order(), "cpu", seeded=False, generator=torch.Generator().manual_seed(seed))
    comparison = Comparison(cast("Any", SimpleNamespace(truth=truth, bounds=[[None]])), None)
    candidate, reference = (cast("Runner", Place(output)) for output in (got, want))
    comparison.outputs(candidate, reference, 0, Draw(*describe(((scores,), {}))), None, 0)
    return comparison


@pytest.fixture
def scores() -> torch.Tensor:
    """Rising numbers, the first pairs of which almost tie."""
    made = torch.arange(1.0, ROWS + 1)
    made[1 : 2 * PAIRS : 2] = made[0 : 2 * PAIRS : 2] * (1 + GAP)
    return made


@pytest.mark.parametrize("seed", range(4))
def test_a_few_rare_ties_are_known_as_such(scores: torch.Tensor, seed: int) -> None:
    want = torch.argsort(scores)
    got = want.clone()
    got[[0, 1, 4, 5]] = got[[1, 0, 5, 4]]
    assert compared(got, want, scores, seed).near_ties == 4


def test_places_far_apart_are_wrong(scores: torch.Tensor) -> None:
    want = torch.argsort(scores)
    got = want.clone()
    got[[20, 21]] = got[[21, 20]]
    with pytest.raises(FaultError, match="2 of 64 elements differ, and not by a near-tie"):
        compared(got, want, scores, 0)
