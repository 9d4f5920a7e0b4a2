"""From paired blocks to a speedup with an interval. Pure arithmetic: no clock, no torch.

Source: CUDA-L1 (arXiv 2507.14111, section 2.4.4) for pairing, random order and the median; the interval is a
percentile bootstrap of the median of log ratios.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

RESAMPLES = 400
CONFIDENCE = 0.95
LEAST_FOR_BOOTSTRAP = 6
# By so much more two processes of equal code differ on a CPU than the pairs of one judgement show: with it, 114 of 120
# such judgements held 1 in their intervals, without it 108 (two cores, 12 modules of 10 µs to 10 ms).
BETWEEN_PROCESSES = 0.01
SLACK = 0.02  # share of the reference's time that a saving may lack without being held against a candidate


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
    def proven(self) -> float:
        """The speedup, or 1 where the interval does not tell it from 1."""
        return 1.0 if self.low <= 1.0 <= self.high else self.speedup

    @property
    def width(self) -> float:
        """Half the interval relative to the speedup."""
        return (self.high - self.low) / 2 / self.speedup


@dataclass(frozen=True, slots=True)
class Saving:
    """Seconds a call that the candidate saves; a cost that both sides pay alike does not move it."""

    seconds: float
    low: float
    high: float


def saving(pairs: Sequence[tuple[float, float]], seed: int = 0) -> Saving:
    """Median of reference - candidate, from (reference, candidate) seconds a call."""
    differences = [reference - candidate for reference, candidate in pairs]
    return Saving(median(differences), *_interval(differences, seed))


def hidden(called: Sequence[tuple[float, float]], delivered: Sequence[tuple[float, float]], seed: int = 0) -> Saving:
    """What is left of the claimed saving once work is counted that came to light only as the outputs arrived.

    Both from the same blocks, in seconds a call. Taken pair by pair: what disturbed a block lies in both its times.
    """
    work = [
        (said_r - said_c) - (came_r - came_c)
        for (said_r, said_c), (came_r, came_c) in zip(called, delivered, strict=True)
    ]
    claimed = saving(called).seconds
    low, high = _interval(work, seed)
    return Saving(claimed - median(work), claimed - high, claimed - low)


def held_to(best: Estimate, claimed: float, proven: Saving, slack: float = 0.0, noise: float = math.inf) -> Estimate:
    """`best`, or what is left of it where the `claimed` saving (seconds a call) is more than is `proven`.

    Savings are compared and not ratios: measured another way both sides may pay the same extra cost, which
    draws a ratio towards 1 without telling anything about the candidate. The upper end of what is proven counts
    for the candidate, which it cannot raise: whatever it does to scatter its times makes them longer. But no more than
    `noise` above the middle, since others may scatter them. `slack` is what may be missing. All in seconds a call.
    """
    reference = best.reference_ms / 1e3
    if best.speedup <= 1 or claimed <= min(proven.high, proven.seconds + noise) + slack + SLACK * reference:
        return best

    def ratio(saved: float) -> float:
        saved = min(max(saved, 0.0), claimed)
        return reference / max(reference - saved, reference / best.speedup)

    middle = ratio(proven.seconds)
    return Estimate(
        middle, ratio(proven.low), ratio(proven.high), best.reference_ms, best.reference_ms / middle, best.pairs
    )


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


def between_processes(found: Estimate) -> Estimate:
    """With what the pairs of two processes cannot tell of other processes that run the same code."""
    wider = 1 + BETWEEN_PROCESSES
    return replace(found, low=found.low / wider, high=found.high * wider)


def _interval(values: Sequence[float], seed: int) -> tuple[float, float]:
    """Bootstrap interval of the median; with too few values for that, their whole range."""
    if len(values) < LEAST_FOR_BOOTSTRAP:
        return min(values), max(values)
    source = random.Random(seed)
    medians = sorted(median(source.choices(values, k=len(values))) for _ in range(RESAMPLES))
    cut = int(RESAMPLES * (1 - CONFIDENCE) / 2)
    return medians[cut], medians[-1 - cut]
