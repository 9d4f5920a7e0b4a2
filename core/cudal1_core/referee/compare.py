"""How far two outputs are apart, and how far they may be.

The bound lies halfway, on a log scale, between the reference's own error against a float64 run and the error of
the same computation with its inputs and weights rounded to the next cheaper number format. So an answer as good
as the reference passes, one computed in that format does not, and no fixed absolute tolerance can let zeros by.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

BFLOAT16_BITS = 7
OWN_FACTOR = 6.0  # times the reference's own error is always allowed

# dtype -> (mantissa bits, mantissa bits of the cheaper format): TF32 for float32, e4m3 for the halves
MANTISSA = {
    torch.float64: (52, 23),
    torch.float32: (23, 10),
    torch.float16: (10, 3),
    torch.bfloat16: (7, 3),
    torch.complex128: (52, 23),
    torch.complex64: (23, 10),
}


@dataclass(frozen=True, slots=True)
class Distance:
    """Root mean square, worst element and worst row of |a - b|."""

    rms: float
    worst: float
    row: float

    def values(self) -> tuple[float, float, float]:
        return self.rms, self.worst, self.row


def larger(one: Distance, other: Distance) -> Distance:
    return Distance(*map(max, one.values(), other.values()))


ZERO = Distance(0.0, 0.0, 0.0)
INFINITE = Distance(math.inf, math.inf, math.inf)


def distance(a: torch.Tensor, b: torch.Tensor, exact: bool = False) -> Distance:
    """Between two tensors of one shape. Infinite where their non-finite elements differ; those are then left out.

    `exact` subtracts in float64; otherwise in float32, whose difference of near-equal numbers is exact.
    """
    if a.numel() == 0:
        return ZERO
    if a.dtype.is_complex:
        a, b = torch.view_as_real(a), torch.view_as_real(b)
    wide = torch.float64 if exact or torch.float64 in (a.dtype, b.dtype) else torch.float32
    a, b = a.to(wide), b.to(wide)
    difference = (a - b).abs_()
    if not math.isfinite(float(difference.sum())):
        same = (a == b) | (a.isnan() & b.isnan())
        finite = a.isfinite() & b.isfinite()
        if not bool((same | finite).all()):
            return INFINITE
        difference = torch.where(finite, difference, 0)
    worst = float(difference.max())
    if worst == 0.0:
        return ZERO
    scaled = difference.div_(worst)  # squares of tiny numbers would vanish
    squares = scaled.square_()
    rms = worst * math.sqrt(float(squares.mean(dtype=torch.float64)))
    row = worst * math.sqrt(float(squares.mean(-1).max())) if squares.dim() > 1 else rms
    return Distance(rms, worst, row)


def comparable(tensor: torch.Tensor) -> torch.Tensor:
    """The same values in a dtype that torch can compare and reckon with."""
    if tensor.dtype.is_floating_point and tensor.dtype.itemsize == 1:
        return tensor.float()
    if tensor.dtype in (torch.uint16, torch.uint32):
        return tensor.long()
    return tensor.view(torch.int64) if tensor.dtype == torch.uint64 else tensor


def equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.equal(comparable(one), comparable(other))


def differing(one: torch.Tensor, other: torch.Tensor) -> int:
    """How many elements are not the same."""
    return int((comparable(one) != comparable(other)).sum())


CHUNK = 1 << 26  # elements compared at a time


def distances(a: torch.Tensor, b: torch.Tensor) -> list[tuple[Distance, float]] | None:
    """Distance and scale of each row of two stacks of outputs, at the price of one.

    None where something is not finite or the dtype is unusual: then rows must be compared one by one.
    """
    if a.dtype not in (torch.float32, torch.float64, torch.float16, torch.bfloat16) or not a[0].numel():
        return None
    wide = torch.float64 if a.dtype == torch.float64 else torch.float32
    rows = max(1, CHUNK // a[0].numel())
    found: list[tuple[Distance, float]] = []
    for start in range(0, len(a), rows):
        one, two = a[start : start + rows].to(wide), b[start : start + rows].to(wide)
        count = len(one)
        off = (one - two).abs_().reshape(count, -1)
        worst = off.amax(1)
        squares = (off / worst.clamp(min=torch.finfo(wide).tiny).unsqueeze(1)).square_().view(one.shape)
        mean = squares.view(count, -1).mean(1, dtype=torch.float64)
        row = squares.mean(-1).reshape(count, -1).amax(1) if squares.dim() > 2 else mean
        scale = two.reshape(count, -1).square().mean(1, dtype=torch.float64).sqrt()
        table = torch.stack([worst.double(), mean.sqrt() * worst, row.double().sqrt() * worst, scale], 1).tolist()
        if not all(math.isfinite(value) for line in table for value in line):
            return None
        found += [(Distance(rms, worst_, row_), scale_) for worst_, rms, row_, scale_ in table]
    return found


def scale_of(truth: torch.Tensor) -> float:
    """Root mean square of the finite elements."""
    if truth.numel() == 0:
        return 0.0
    values = torch.view_as_real(truth) if truth.dtype.is_complex else truth
    values = values.double()
    values = torch.where(values.isfinite(), values, 0)
    return math.sqrt(float(values.square().mean()))


def round_mantissa(tensor: torch.Tensor, bits: int) -> torch.Tensor:
    """Values rounded to nearest with `bits` explicit mantissa bits; the exponent range stays."""
    if tensor.dtype.is_complex:
        return torch.view_as_complex(round_mantissa(torch.view_as_real(tensor), bits))
    fraction, exponent = torch.frexp(tensor)
    step = 2.0 ** (bits + 1)
    rounded = torch.ldexp(torch.round(fraction * step) / step, exponent)
    return torch.where(tensor.isfinite(), rounded, tensor).to(tensor.dtype)


@dataclass(frozen=True, slots=True)
class Bound:
    """Allowed distance of one output from the truth, relative to the truth's scale."""

    allowed: Distance
    own: Distance  # the reference's own distance from the truth
    cheap: Distance  # that of the cheaper format

    def excess(self, found: Distance, scale: float, extra: float = 0.0) -> float:
        """Largest ratio of found to allowed; at most 1 passes. `extra` times the own error is allowed on top."""
        worst = 0.0
        for value, allowed, own in zip(found.values(), self.allowed.values(), self.own.values(), strict=True):
            limit = (allowed + extra * own) * scale
            worst = max(worst, value / limit if limit > 0 else (0.0 if value == 0 else math.inf))
        return worst

    def looks_reduced(self, found: Distance, scale: float) -> bool:
        """Whether the error is of the size that rounding to a cheaper format (down to 8 times TF32) makes."""
        return math.isfinite(self.cheap.rms) and found.rms <= 16 * self.cheap.rms * scale


def bound_for(
    dtype: torch.dtype, truths: Sequence[torch.Tensor], own: Sequence[Distance], cheap: Sequence[Distance]
) -> Bound:
    """The bound from one or several calibration sets; errors are taken relative to each set's scale."""
    bits, cheap_bits = MANTISSA.get(dtype, (23, 10))
    epsilon = 2.0 ** -(bits + 1)
    relative_own, relative_cheap = [], []
    for truth, o, c in zip(truths, own, cheap, strict=True):
        scale = scale_of(truth) or 1.0
        relative_own.append([value / scale for value in o.values()])
        relative_cheap.append([value / scale for value in c.values()])
    own_values = [max(column) for column in zip(*relative_own, strict=True)]
    cheap_values = [max(column) for column in zip(*relative_cheap, strict=True)]
    if all(scale_of(truth) == 0.0 for truth in truths):
        return Bound(ZERO, ZERO, ZERO)
    allowed = []
    for o, c in zip(own_values, cheap_values, strict=True):
        floor = max(o, epsilon / 2)
        middle = math.sqrt(floor * max(c, 2.0 ** -(cheap_bits + 3)))
        allowed.append(max(OWN_FACTOR * floor, min(middle, 64 * floor)))
    return Bound(Distance(*allowed), Distance(*own_values), Distance(*cheap_values))
