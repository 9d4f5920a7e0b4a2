"""Which archived candidates a contrastive prompt shows.

Bucket choice is CUDA-L1's (arXiv 2507.14111, section 2.4.3, equation 1): candidates lie in buckets
[s_k, s_k + width) by speedup; distinct buckets are drawn with probability softmax(mean of the bucket /
temperature); inside a bucket the draw is uniform. The softmax prefers the fast, distinct buckets keep a
contrast. The paper gives neither width nor temperature; the defaults here are ours.

Islands are the paper's alternative, after FunSearch: a candidate lives on the island of the first exemplar that its
own prompt showed, one without such a parent on an island drawn from its source. One island is drawn uniformly and
all exemplars come from it, by bucket; what it lacks, the fastest of the others bring. Islands are not reset.

With one earlier candidate the contrast is that candidate against the reference at 1.00x, which every prompt shows.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, get_args

from cudal1_core.policies.base import Judged

How = Literal["bucket", "island", "random", "none"]
CHOICES: tuple[How, ...] = get_args(How)


@dataclass(frozen=True, slots=True)
class ExemplarOptions:
    how: How = "bucket"
    count: int = 2  # candidates shown, not counting what the person feeds beyond it
    width: float = 0.25  # of a bucket, in speedup
    temperature: float = 0.5  # in speedup; small prefers the fastest bucket
    islands: int = 4


def eligible(judged: Judged) -> bool:
    """Only accepted, timed, drop-in code carries a score."""
    verdict = judged.verdict
    return verdict.accepted and verdict.speedup is not None and "not_drop_in" not in verdict.labels


def choose(
    pool: Sequence[Judged], options: ExemplarOptions, seed: int, dismissed: Collection[str] = ()
) -> tuple[Judged, ...]:
    """Exemplars, what carries no score first, then slowest first. The same arguments give the same choice.

    Fed candidates always enter, whatever was found of them and also beyond `count`; dismissed ones (by id) never.
    """
    pool = [judged for judged in pool if judged.candidate.id not in dismissed and judged.candidate.source]
    chosen = _distinct([judged for judged in pool if judged.fed], ())
    rest = _distinct([judged for judged in pool if not judged.fed and eligible(judged)], chosen)
    wanted = max(0, options.count - len(chosen))
    rng = random.Random(f"exemplars {seed}")
    match options.how:
        case "random":
            chosen += rng.sample(rest, min(wanted, len(rest)))
        case "bucket":
            chosen += _from_buckets(rest, wanted, options, rng)
        case "island":
            chosen += _from_island(pool, rest, wanted, options, rng)
        case "none":
            pass
    return tuple(sorted(chosen, key=_score))


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


def _from_island(
    pool: Sequence[Judged], rest: Sequence[Judged], wanted: int, options: ExemplarOptions, rng: random.Random
) -> list[Judged]:
    home = islands(pool, options.islands)
    found: dict[int, list[Judged]] = {}
    for judged in rest:
        found.setdefault(home[judged.candidate.id], []).append(judged)
    if not found:
        return []
    drawn = rng.choice(sorted(found))
    chosen = _from_buckets(found[drawn], wanted, options, rng)
    others = sorted((judged for judged in rest if home[judged.candidate.id] != drawn), key=_speedup, reverse=True)
    return chosen + others[: wanted - len(chosen)]


def islands(pool: Sequence[Judged], count: int) -> dict[str, int]:
    """The island of each candidate by id: its parent's, or one drawn from its source."""
    candidates = {judged.candidate.id: judged.candidate for judged in pool}

    def parent(id: str) -> str | None:
        run, slash, _ = id.rpartition("/")  # ids of earlier runs have the run in front, their exemplars do not
        for exemplar in candidates[id].exemplars:
            for name in (f"{run}{slash}{exemplar}", exemplar):
                if name in candidates and name != id:
                    return name
        return None

    def home(id: str) -> int:
        seen = {id}
        while (above := parent(id)) is not None and above not in seen:
            id = above
            seen.add(id)
        return int(candidates[id].source_hash[:8], 16) % count

    return {id: home(id) for id in candidates}


def _distinct(pool: Sequence[Judged], taken: Sequence[Judged]) -> list[Judged]:
    """One of each source, none that is shown already."""
    seen = {judged.candidate.source_hash for judged in taken}
    found = []
    for judged in pool:
        if judged.candidate.source_hash not in seen:
            seen.add(judged.candidate.source_hash)
            found.append(judged)
    return found


def _score(judged: Judged) -> float:
    return _speedup(judged) if eligible(judged) else 0.0


def _speedup(judged: Judged) -> float:
    return judged.verdict.speedup or 0.0
