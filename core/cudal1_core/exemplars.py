"""Which archived candidates a contrastive prompt shows.

Bucket choice is CUDA-L1's (arXiv 2507.14111, section 2.4.3, equation 1): candidates lie in buckets
[s_k, s_k + width) by speedup; distinct buckets are drawn with probability softmax(mean of the bucket /
temperature); inside a bucket the draw is uniform. The softmax prefers the fast, distinct buckets keep a
contrast. The paper gives neither width nor temperature; the defaults here are ours.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from cudal1_core.policies.base import Judged


@dataclass(frozen=True, slots=True)
class ExemplarOptions:
    how: Literal["bucket", "random", "none"] = "bucket"
    count: int = 2  # candidates shown, not counting what the person feeds beyond it
    width: float = 0.25  # of a bucket, in speedup
    temperature: float = 0.5  # in speedup; small prefers the fastest bucket


def eligible(judged: Judged) -> bool:
    """Only accepted, timed, drop-in code is shown."""
    verdict = judged.verdict
    return verdict.accepted and verdict.speedup is not None and "not_drop_in" not in verdict.labels


def choose(
    pool: Sequence[Judged], options: ExemplarOptions, seed: int, dismissed: Collection[str] = ()
) -> tuple[Judged, ...]:
    """Exemplars, slowest first. Fed candidates always enter; dismissed ones (by id) never.

    The same pool, options and seed give the same choice.
    """
    if options.how == "none":
        return ()
    pool = [judged for judged in pool if eligible(judged) and judged.candidate.id not in dismissed]
    chosen = [judged for judged in pool if judged.fed]
    rest = _distinct([judged for judged in pool if not judged.fed], chosen)
    wanted = max(0, options.count - len(chosen))
    rng = random.Random(f"exemplars {seed}")
    if options.how == "random":
        chosen += rng.sample(rest, min(wanted, len(rest)))
    else:
        chosen += _from_buckets(rest, wanted, options, rng)
    return tuple(sorted(chosen, key=_speedup))


def buckets(pool: Sequence[Judged], width: float) -> list[list[Judged]]:
    """Non-empty buckets, slowest first."""
    found: dict[int, list[Judged]] = {}
    for judged in pool:
        found.setdefault(math.floor(_speedup(judged) / width + 1e-9), []).append(judged)
    return [found[key] for key in sorted(found)]


def probabilities(means: Sequence[float], temperature: float) -> list[float]:
    """Equation 1, centred by the mean over buckets as in the paper, and held below overflow."""
    centre = fmean(means)
    powers = [(mean - centre) / temperature for mean in means]
    top = max(0.0, max(powers) - 700.0)
    weights = [math.exp(power - top) for power in powers]
    total = sum(weights)
    return [weight / total for weight in weights]


def _from_buckets(pool: Sequence[Judged], wanted: int, options: ExemplarOptions, rng: random.Random) -> list[Judged]:
    left = buckets(pool, options.width)
    chosen: list[Judged] = []
    while left and len(chosen) < wanted:
        means = [fmean(_speedup(judged) for judged in bucket) for bucket in left]
        (index,) = rng.choices(range(len(left)), probabilities(means, options.temperature))
        chosen.append(rng.choice(left.pop(index)))
    return chosen


def _distinct(pool: Sequence[Judged], taken: Sequence[Judged]) -> list[Judged]:
    """One of each source, none that is shown already."""
    seen = {judged.candidate.source_hash for judged in taken}
    found = []
    for judged in pool:
        if judged.candidate.source_hash not in seen:
            seen.add(judged.candidate.source_hash)
            found.append(judged)
    return found


def _speedup(judged: Judged) -> float:
    return judged.verdict.speedup or 0.0
