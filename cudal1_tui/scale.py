"""The logarithmic scale on which speedups are plotted."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log, log10
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Scale:
    """Logarithmic, so that 0.5x lies as far below 1x as 2x above it."""

    low: float
    high: float

    def height(self, speedup: float) -> float:
        """0 at `low`, 1 at `high`; what lies outside is put on the edge."""
        at = log(min(max(speedup, self.low), self.high) / self.low)
        return at / log(self.high / self.low)

    def ticks(self) -> list[float]:
        """1, 2 and 5 of every power of ten in reach, largest first."""
        first, last = floor(log10(self.low)), floor(log10(self.high))
        values = [digit * 10.0**power for power in range(first, last + 1) for digit in (1, 2, 5)]
        return [value for value in reversed(values) if self.low <= value <= self.high]


def scale_for(speedups: Iterable[float]) -> Scale:
    """Holds all of them and 1x, with room where they lie close together."""
    values = [max(value, 1e-3) for value in speedups]
    return Scale(min(*values, 1.0, 0.8) * 0.97, max(*values, 1.0, 1.25) * 1.03)
