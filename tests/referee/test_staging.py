"""What lies on the stage is what the draws say, whatever the layout, and every filling is a new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from cudal1_core.referee.drawing import InputSource
from cudal1_core.referee.layout import lay_out
from cudal1_core.referee.staging import Stage

INPUTS: dict[str, Callable[[], Any]] = {
    "contiguous": lambda: [torch.rand(16, 40), torch.randint(0, 9, (70,))],
    "transposed": lambda: [torch.rand(16, 40).t()],
    "expanded": lambda: [torch.rand(90, 1).expand(90, 7)],
    "strided": lambda: [torch.rand(16, 80)[:, ::2]],
    "always the same": lambda: [torch.ones(16, 40), torch.arange(7)],
    "float8 and half": lambda: [torch.rand(16, 40).to(torch.float8_e4m3fn), torch.rand(33).half()],
    "plain numbers too": lambda: [torch.rand(16, 40), 3, "mean", None],
}


@pytest.mark.parametrize("name", INPUTS)
def test_fillings_are_new_and_every_set_of_them_another(name: str) -> None:
    source = InputSource(INPUTS[name], "cpu")
    stage = Stage(lay_out(source.tree.tensors, 5), "cpu")
    earlier = [[t.clone() for t in draw.tensors] for draw in stage.fill(source, 5)]
    draws = stage.fill(source, 5)
    sets = [*earlier, *([t.clone() for t in draw.tensors] for draw in draws)]
    assert len(draws) == 5
    first = [tensors[0].float() for tensors in sets]
    assert all(not torch.equal(one, two) for number, one in enumerate(first) for two in first[:number])
    assert all(
        t.dtype == leaf.dtype and tuple(t.shape) == leaf.shape
        for s in sets
        for t, leaf in zip(s, stage.slots.leaves, strict=True)
    )


@pytest.mark.parametrize("name", INPUTS)
def test_what_is_put_down_is_what_lies_there(name: str) -> None:
    source = InputSource(INPUTS[name], "cpu")
    stage = Stage(lay_out(source.tree.tensors, 3), "cpu")
    draws = [source.fresh() for _ in range(3)]
    stage.put(draws)
    for slot, draw in enumerate(draws):
        for lying, meant in zip(stage.slots.views(stage.arena, slot), draw.tensors, strict=True):
            assert torch.equal(lying.float(), meant.float())
