"""Distances and bounds: own error passes, a cheaper format does not, zeros never do."""

from __future__ import annotations

import math

import pytest
import torch
from cudal1_core.referee import compare


def bound(truth: torch.Tensor, own: torch.Tensor, cheap: torch.Tensor, dtype: torch.dtype) -> compare.Bound:
    distances = [compare.distance(value, truth, exact=True) for value in (own, cheap)]
    return compare.bound_for(dtype, [truth], distances[:1], distances[1:])


@pytest.fixture
def product() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.rand(64, 512, generator=generator), torch.rand(512, 64, generator=generator)


def matmul_bound(product: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, compare.Bound]:
    a, b = product
    truth = a.double() @ b.double()
    cheap = compare.round_mantissa(a, 10).double() @ compare.round_mantissa(b, 10).double()
    return truth, bound(truth, a @ b, cheap, torch.float32)


def test_rounding_keeps_what_has_few_bits_and_rounds_the_rest() -> None:
    values = torch.tensor([1.0, -2.5, 1 + 2.0**-10, 1 + 2.0**-11, 0.0, float("inf")])
    assert compare.round_mantissa(values, 10).tolist() == [1.0, -2.5, 1 + 2.0**-10, 1.0, 0.0, float("inf")]


def test_another_order_of_summing_passes(product: tuple[torch.Tensor, torch.Tensor]) -> None:
    truth, limit = matmul_bound(product)
    a, b = product
    reordered = (a.flip(1) @ b.flip(0)).double()
    assert limit.excess(compare.distance(reordered, truth, exact=True), compare.scale_of(truth)) <= 1


@pytest.mark.parametrize("bits", [10, 7])
def test_a_cheaper_format_fails_and_is_recognised(product: tuple[torch.Tensor, torch.Tensor], bits: int) -> None:
    truth, limit = matmul_bound(product)
    a, b = (compare.round_mantissa(value, bits) for value in product)
    found = compare.distance(a @ b, truth, exact=True)
    assert limit.excess(found, compare.scale_of(truth)) > 1
    assert limit.looks_reduced(found, compare.scale_of(truth))


def test_zeros_fail_where_every_number_is_tiny() -> None:
    x = torch.rand(4, 65536, generator=torch.Generator().manual_seed(2))
    truth = x.double().softmax(1)
    limit = bound(truth, x.softmax(1), compare.round_mantissa(x, 10).double().softmax(1), torch.float32)
    assert limit.excess(compare.distance(torch.zeros_like(x), truth, exact=True), compare.scale_of(truth)) > 1000


def test_one_wrong_element_among_a_million_fails() -> None:
    x = torch.rand(1000, 1000, generator=torch.Generator().manual_seed(3))
    truth = x.double().exp()
    limit = bound(truth, x.exp(), compare.round_mantissa(x, 10).double().exp(), torch.float32)
    wrong = x.exp()
    wrong[500, 500] *= 1.001
    assert limit.excess(compare.distance(wrong, truth, exact=True), compare.scale_of(truth)) > 1


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_non_finite_never_matches_a_number(bad: float) -> None:
    wrong = torch.ones(8)
    wrong[3] = bad
    assert compare.distance(wrong, torch.ones(8)) == compare.INFINITE
    assert compare.distance(wrong, wrong.clone()) == compare.ZERO


def test_infinities_of_other_sign_differ() -> None:
    assert compare.distance(torch.tensor([math.inf]), torch.tensor([-math.inf])) == compare.INFINITE


def test_complex_and_empty_outputs() -> None:
    z = torch.tensor([1 + 2j, 3 - 1j])
    assert compare.distance(z, z.clone()) == compare.ZERO
    assert compare.distance(z, z + 1j).worst == pytest.approx(1.0)
    assert compare.distance(torch.empty(0, 4), torch.empty(0, 4)) == compare.ZERO


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4)])
def test_a_stack_is_compared_as_its_rows_are(shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(4)
    a = torch.rand(6, *shape, generator=generator)
    b = a + 1e-3 * torch.rand(6, *shape, generator=generator)
    together = compare.distances(a, b)
    assert together is not None
    for (found, scale), one, two in zip(together, a, b, strict=True):
        alone = compare.distance(one, two)
        assert found.values() == pytest.approx(alone.values(), rel=1e-4)
        assert scale == pytest.approx(compare.scale_of(two), rel=1e-5)


def test_an_error_is_not_called_reduced_precision_where_no_cheaper_format_could_be_tried() -> None:
    truth = torch.rand(64, 64, dtype=torch.float64)
    own = compare.Distance(1e-8, 1e-7, 1e-8)
    bound = compare.bound_for(torch.float32, [truth], [own], [compare.INFINITE])
    assert not bound.looks_reduced(compare.Distance(0.1, 0.1, 0.1), 1.0)
    assert bound.excess(compare.Distance(0.1, 0.1, 0.1), 1.0) > 1
