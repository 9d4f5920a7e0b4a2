"""From paired blocks to a speedup with an interval. Pure arithmetic: no clock, no torch.

Source: CUDA-L1 (arXiv 2507.14111, section 2.4.4) for pairing, random order and the median; the interval is a
percentile bootstrap of the median of log ratios.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

RESAMPLES = 400
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """Speedup as reference / candidate; times in milliseconds a call."""

    speedup: float
    low: float
    high: float
    reference_ms: float
    candidate_ms: float
    pairs: int

    @property
    def width(self) -> float:
        """Half the interval relative to the speedup."""
        return (self.high - self.low) / 2 / self.speedup


def estimate(pairs: Sequence[tuple[float, float]], seed: int = 0) -> Estimate:
    """From (reference, candidate) seconds a call, one pair for each two blocks measured side by side."""
    logs = [math.log(reference / candidate) for reference, candidate in pairs]
    middle = median(logs)
    source = random.Random(seed)
    medians = sorted(median(source.choices(logs, k=len(logs))) for _ in range(RESAMPLES))
    cut = int(RESAMPLES * (1 - CONFIDENCE) / 2)
    low, high = medians[cut], medians[-1 - cut]
    if len(logs) < 6:  # too few for a bootstrap: the whole range
        low, high = min(logs), max(logs)
    return Estimate(
        math.exp(middle),
        math.exp(low),
        math.exp(high),
        median(r for r, _ in pairs) * 1e3,
        median(c for _, c in pairs) * 1e3,
        len(pairs),
    )
