"""Mixed inputs are fresh, and keep what all of the reference's own draws share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from cudal1_core.referee.drawing import BEYOND, InputSource


def fresh(get_inputs: Callable[[], Any], index: int = 0) -> tuple[InputSource, torch.Tensor, torch.Tensor]:
    source = InputSource(get_inputs, "cpu")
    return source, source.fresh().tensors[index], source.fresh().tensors[index]


def test_every_set_is_another_one() -> None:
    source, one, two = fresh(lambda: [torch.rand(64, 300)])
    assert not torch.equal(one, two)
    assert all(not torch.equal(one, draw.tensors[0]) for draw in source.pool)
    assert bool(((one >= 0) & (one < 1)).all())


def test_zero_pattern_stays() -> None:
    _, one, _ = fresh(lambda: [torch.rand(96, 96).triu()])
    assert bool((one.tril(-1) == 0).all())


def test_row_sums_stay() -> None:
    _, one, two = fresh(lambda: [torch.rand(50, 130).softmax(1)])
    assert torch.allclose(one.sum(1), torch.ones(50))
    assert not torch.equal(one, two)


def test_sorted_rows_stay_sorted() -> None:
    _, one, _ = fresh(lambda: [torch.rand(40, 100).sort(1).values])
    assert bool((one.diff(dim=1) >= 0).all())


def test_symmetric_inputs_stay_symmetric() -> None:
    def get_inputs() -> list[torch.Tensor]:
        x = torch.rand(80, 80)
        return [x + x.T]

    _, one, two = fresh(get_inputs)
    assert torch.equal(one, one.T)
    assert not torch.equal(one, two)


def test_integers_keep_their_value_set_and_strides_stay() -> None:
    _, one, _ = fresh(lambda: [torch.randint(3, 9, (70, 90)).T])
    assert one.stride() == (1, 90)
    assert set(one.unique().tolist()) <= set(range(3, 9))


def test_expanded_inputs_keep_their_form() -> None:
    _, one, _ = fresh(lambda: [torch.rand(1, 200).expand(5, 200)])
    assert one.stride() == (0, 1)
    assert torch.equal(one[0], one[4])


def test_constant_inputs_are_shaken() -> None:
    _, one, two = fresh(lambda: [torch.ones(100)])
    assert not torch.equal(one, two)


@pytest.mark.parametrize("shape", [(), (1,), (63,), (0, 4), (129, 3)])
def test_small_and_odd_shapes(shape: tuple[int, ...]) -> None:
    source, one, _ = fresh(lambda: [torch.rand(100), torch.rand(shape)], index=1)
    assert one.shape == torch.Size(shape)
    assert all(torch.isfinite(tensor).all() for tensor in source.fresh().tensors)


def test_a_nudge_changes_one_element() -> None:
    source = InputSource(lambda: [torch.rand(64, 64)], "cpu")
    draw = source.fresh()
    assert int((source.nudged(draw).tensors[0] != draw.tensors[0]).sum()) == 1


def beyond(get_inputs: Callable[[], Any], variation: str) -> list[torch.Tensor]:
    return InputSource(get_inputs, "cpu").beyond(variation).tensors


def test_beyond_the_domain_signs_scale_and_structure_are_others() -> None:
    def get_inputs() -> list[torch.Tensor]:
        return [torch.rand(96, 96).triu()]

    (signs,) = beyond(get_inputs, "other signs")
    assert bool((signs < 0).any())
    assert bool((signs.abs() < 1).all())
    (scale,) = beyond(get_inputs, "another scale")
    assert float(scale.max()) > 10
    (outliers,) = beyond(get_inputs, "outliers")
    assert bool((outliers.tril(-1) != 0).any())  # no draw has anything there
    assert int((outliers.abs() > 5).sum()) < outliers.numel() // 100


@pytest.mark.parametrize("variation", BEYOND)
def test_beyond_the_domain_form_integers_and_masks_stay(variation: str) -> None:
    mask = torch.ones(8, 8).tril()

    def get_inputs() -> list[torch.Tensor]:
        return [torch.rand(8, 16)[:, ::2], torch.randint(0, 9, (70,)), mask, torch.rand(8, 1).expand(8, 64)]

    source = InputSource(get_inputs, "cpu")
    draw = source.beyond(variation)
    assert [tensor.shape for tensor in draw.tensors] == [leaf.shape for leaf in source.tree.tensors]
    assert [tensor.stride() for tensor in draw.tensors] == [leaf.strides for leaf in source.tree.tensors]
    assert bool(((draw.tensors[1] >= 0) & (draw.tensors[1] < 9)).all())
    assert torch.equal(draw.tensors[2], mask)


def test_where_only_integers_vary_there_is_nothing_beyond() -> None:
    assert not InputSource(lambda: [torch.randint(0, 9, (70,))], "cpu").goes_beyond
    assert InputSource(lambda: [torch.ones(70)], "cpu").goes_beyond  # the same each time: all there is to vary
