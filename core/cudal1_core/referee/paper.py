"""CUDA-L1's own rules of timing (arXiv 2507.14111, section 2.4.4), for figures that compare with the paper's.

Pairs in random order over a fixed time; the ratios of all pairs, in the order measured, in seven buckets; where their
means vary by more than 0.005 the measurement is discarded; the median of the means, rounded towards 1, is the score. A
score above 3, or above twice the best so far, is measured once more elsewhere and must come out within 10 %. The paper
does not say how variance is taken; here it is the mean squared distance from the means' mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median, pvariance

from cudal1_core.verdict import round_towards_one

BUCKETS = 7
MOST_VARIANCE = 0.005
SUSPICIOUS = 3.0  # speedup from which one measurement is not believed
TIMES_BEST = 2.0  # the best so far, likewise
AGREEMENT = 0.10  # share by which a second measurement may differ
COUNTS_FROM = 1.01  # a speedup not above this counts as none in the paper's tables


@dataclass(frozen=True, slots=True)
class Score:
    means: tuple[float, ...]  # of the buckets, in order of time
    variance: float

    @property
    def discarded(self) -> bool:
        return self.variance > MOST_VARIANCE

    @property
    def value(self) -> float | None:
        """Rounded to two decimals towards 1; None where the measurement is discarded."""
        return None if self.discarded else round_towards_one(median(self.means))


def score(ratios: Sequence[float]) -> Score:
    """From reference / candidate of every pair, in the order measured. Raises ValueError for fewer than seven."""
    if len(ratios) < BUCKETS:
        raise ValueError(f"{len(ratios)} pairs do not fill {BUCKETS} buckets")
    edges = [len(ratios) * number // BUCKETS for number in range(BUCKETS + 1)]
    means = tuple(fmean(ratios[start:end]) for start, end in pairwise(edges))
    return Score(means, pvariance(means))


def is_suspicious(value: float, best: float | None = None) -> bool:
    """Whether it takes a second measurement to believe it. `best` is the best of this task so far."""
    return value > SUSPICIOUS or (best is not None and value > TIMES_BEST * best)


def agree(first: float, second: float | None) -> bool:
    """None, a measurement that was discarded, agrees with nothing."""
    return second is not None and abs(second - first) <= AGREEMENT * first + 1e-9
