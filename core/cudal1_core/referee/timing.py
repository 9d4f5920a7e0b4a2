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
LEAST_FOR_BOOTSTRAP = 6
SLACK = 0.1  # share of a saving that may be missing without being held against a candidate


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


@dataclass(frozen=True, slots=True)
class Saving:
    """Seconds a call that the candidate saves; a cost that both sides pay alike does not move it."""

    seconds: float
    noise: float  # half the interval


def saving(pairs: Sequence[tuple[float, float]], seed: int = 0) -> Saving:
    """Median of reference - candidate, from (reference, candidate) seconds a call."""
    differences = [reference - candidate for reference, candidate in pairs]
    low, high = _interval(differences, seed)
    return Saving(median(differences), (high - low) / 2)


def held_to(best: Estimate, claimed: Saving, proven: Saving, overhead: float = 0.0) -> Estimate:
    """`best`, or what is left of it where `proven` shows a smaller saving than `claimed`, beyond noise.

    Savings are compared and not ratios: measured another way both sides may pay the same extra cost, which
    draws a ratio towards 1 without telling anything about the candidate. `overhead` is that cost, in seconds a
    call: it differs a little from process to process, so a tenth of it is in doubt too.
    """
    if best.speedup <= 1:
        return best
    reference = best.reference_ms / 1e3
    doubt = proven.noise + claimed.noise + SLACK * overhead
    if claimed.seconds - proven.seconds - doubt <= max(SLACK * claimed.seconds, 0.02 * reference):
        return best

    def ratio(saved: float) -> float:
        saved = min(max(saved, 0.0), claimed.seconds)
        return reference / max(reference - saved, reference / best.speedup)

    # once a claim is found too large, doubt no longer speaks for it: only what was proven counts
    middle = ratio(proven.seconds)
    low, high = ratio(proven.seconds - proven.noise), ratio(proven.seconds + proven.noise)
    return Estimate(middle, low, high, best.reference_ms, best.reference_ms / middle, best.pairs)


def estimate(pairs: Sequence[tuple[float, float]], seed: int = 0) -> Estimate:
    """From (reference, candidate) seconds a call, one pair for each two blocks measured side by side."""
    logs = [math.log(reference / candidate) for reference, candidate in pairs]
    low, high = _interval(logs, seed)
    return Estimate(
        math.exp(median(logs)),
        math.exp(low),
        math.exp(high),
        median(r for r, _ in pairs) * 1e3,
        median(c for _, c in pairs) * 1e3,
        len(pairs),
    )


def _interval(values: Sequence[float], seed: int) -> tuple[float, float]:
    """Bootstrap interval of the median; with too few values for that, their whole range."""
    if len(values) < LEAST_FOR_BOOTSTRAP:
        return min(values), max(values)
    source = random.Random(seed)
    medians = sorted(median(source.choices(values, k=len(values))) for _ in range(RESAMPLES))
    cut = int(RESAMPLES * (1 - CONFIDENCE) / 2)
    return medians[cut], medians[-1 - cut]
