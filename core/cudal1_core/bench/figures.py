"""The arithmetic of the table: what came of each task, and statistics over groups of tasks.

As in CUDA-L1's tables: mean, maximum, quartiles and median over the accepted, how many were accepted, and how many of
those are above 1.01x. fast_p is KernelBench's: the share of all tasks whose candidate is right and faster than p.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cudal1_core.bench.row import Row
from cudal1_core.versus import EAGER, versus

FASTER = 1.01
FAST_P = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0, 4.0)
FLAWS = ("constant_output", "weak_task")  # labels of a task on which a wrong answer can pass


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one task: the row that counts, and all there are."""

    task: str
    row: Row  # the best accepted drop-in, else the best accepted, else the first rejected
    rows: tuple[Row, ...]

    @property
    def speedup(self) -> float | None:
        return self.row.verdict.speedup if self.row.verdict.accepted else None

    @property
    def flaws(self) -> tuple[str, ...]:
        found = {label for row in self.rows for label in row.verdict.labels}
        return tuple(label for label in FLAWS if label in found)

    @property
    def unjudged(self) -> bool:
        return all(row.unjudged for row in self.rows)


@dataclass(frozen=True, slots=True)
class Figures:
    """Statistics of a group of tasks. Speedups are over the accepted; None where there are none."""

    name: str
    tasks: int  # judged: without those whose reference or referee failed
    with_code: int
    accepted: int
    faster: int  # accepted and above FASTER
    mean: float | None
    geomean: float | None
    maximum: float | None
    p75: float | None
    median: float | None
    p25: float | None
    fast_p: dict[float, float]  # p -> share of the tasks, 0 to 1

    @property
    def success(self) -> float:
        return self.accepted / self.tasks if self.tasks else 0.0


def outcomes(rows: Iterable[Row]) -> list[Outcome]:
    """One a task, in order of first rows."""
    by_task: dict[str, list[Row]] = {}
    for row in rows:
        by_task.setdefault(row.task, []).append(row)
    return [Outcome(task, min(group, key=_rank), tuple(group)) for task, group in by_task.items()]


def _rank(row: Row) -> tuple[bool, bool, float]:
    verdict = row.verdict
    return not verdict.accepted, "not_drop_in" in verdict.labels, -(verdict.speedup or 0.0)


def figures(name: str, group: Sequence[Outcome], speed: Callable[[Outcome], float | None] | None = None) -> Figures:
    """`speed` gives a task's speedup where it is not the one over the reference; None leaves the task out."""
    judged = [outcome for outcome in group if not outcome.unjudged]
    measure = speed or (lambda outcome: outcome.speedup)
    values = sorted(value for outcome in judged if (value := measure(outcome)) is not None)
    return Figures(
        name=name,
        tasks=len(judged),
        with_code=sum(any(row.has_code for row in outcome.rows) for outcome in judged),
        accepted=len(values),
        faster=sum(value > FASTER for value in values),
        mean=statistics.fmean(values) if values else None,
        geomean=geomean(values),
        maximum=max(values, default=None),
        p75=quantile(values, 0.75),
        median=quantile(values, 0.5),
        p25=quantile(values, 0.25),
        fast_p={p: sum(value > p for value in values) / len(judged) if judged else 0.0 for p in FAST_P},
    )


def geomean(values: Sequence[float]) -> float | None:
    return math.exp(statistics.fmean(math.log(value) for value in values)) if values else None


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """Linear between the two nearest, as NumPy's default."""
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def groups(found: Sequence[Outcome]) -> list[Figures]:
    """Sound tasks as a whole and by level, those with flaws apart, and everything together where that differs."""
    sound = [outcome for outcome in found if not outcome.flaws]
    flawed = [outcome for outcome in found if outcome.flaws and not outcome.unjudged]
    lines = [figures("sound tasks" if flawed else "all tasks", sound)]
    levels = sorted({outcome.row.level for outcome in sound if outcome.row.level is not None})
    if len(levels) > 1:
        for level in levels:
            lines.append(figures(f"level {level}", [outcome for outcome in sound if outcome.row.level == level]))
    if flawed:
        lines += [figures("flawed tasks", flawed), figures("all tasks", found)]
    return lines


def by_baseline(found: Sequence[Outcome]) -> list[Figures]:
    """The same against each baseline that verdicts carry."""
    sound = [outcome for outcome in found if not outcome.flaws]
    names = list(dict.fromkeys(name for outcome in sound for name in outcome.row.verdict.baselines))
    lines = []
    for name in names:
        if name == EAGER:
            lines.append(figures(name, sound))
            continue

        def speed(outcome: Outcome, name: str = name) -> float | None:
            return versus(outcome.speedup, outcome.row.verdict.baselines, name)

        timed = [outcome for outcome in sound if name in outcome.row.verdict.baselines or outcome.speedup is None]
        lines.append(figures(name, timed, speed))
    return lines


@dataclass(frozen=True, slots=True)
class Share:
    """Accepted tasks that have something in common, and what they gained."""

    name: str
    count: int
    geomean: float | None
    median: float | None
    maximum: float | None
    without: float | None = None  # geometric mean of the accepted tasks that lack it
    authored: int = 0  # tasks in which a kernel of the candidate's own was seen to run (a claim)


def by_win(found: Sequence[Outcome]) -> list[Share]:
    return _shares(found, lambda outcome: (outcome.row.verdict.win or "unknown",))


def by_label(found: Sequence[Outcome]) -> list[Share]:
    return _shares(found, lambda outcome: outcome.row.verdict.labels, sound=False)


def by_technique(found: Sequence[Outcome], *, named: bool = False) -> list[Share]:
    """Techniques seen in the source, or as the policy names them."""
    return _shares(found, lambda outcome: outcome.row.named if named else outcome.row.found)


def _shares(found: Sequence[Outcome], names: Callable[[Outcome], Sequence[str]], *, sound: bool = True) -> list[Share]:
    accepted = [outcome for outcome in found if outcome.speedup is not None and not (sound and outcome.flaws)]
    lines = []
    for name in dict.fromkeys(name for outcome in accepted for name in names(outcome)):
        have = [outcome for outcome in accepted if name in names(outcome)]
        inside = sorted(outcome.speedup or 0.0 for outcome in have)
        outside = [outcome.speedup or 0.0 for outcome in accepted if name not in names(outcome)]
        authored = sum("no_authored_kernel" not in outcome.row.verdict.labels for outcome in have)
        lines.append(
            Share(
                name,
                len(have),
                geomean(inside),
                quantile(inside, 0.5),
                max(inside),
                geomean(outside),
                authored,
            )
        )
    return sorted(lines, key=lambda line: (-line.count, line.name))


def rejections(found: Sequence[Outcome]) -> list[tuple[str, int]]:
    """Categories with how many candidates each; most frequent first."""
    counts = Counter(
        row.verdict.category or "unknown"
        for outcome in found
        for row in outcome.rows
        if row.verdict.verdict == "rejected"
    )
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
