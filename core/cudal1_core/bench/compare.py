"""The same suite judged on several devices, by several versions, or written by several policies, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cudal1_core.bench.figures import Outcome, geomean, outcomes, quantile
from cudal1_core.bench.row import Row
from cudal1_core.bench.table import word

Change = Literal["faster", "slower", "same", "gained", "lost", "unknown"]


@dataclass(frozen=True, slots=True)
class TaskChange:
    """How one task stands in one column, against the first."""

    task: str
    change: Change
    before: Outcome | None
    after: Outcome | None
    ratio: float | None = None  # speedup after / before, where both are accepted


@dataclass(frozen=True, slots=True)
class Comparison:
    """One column against the first."""

    name: str
    changes: tuple[TaskChange, ...]  # in order of the first
    geomean: float | None  # of the ratios
    median_change: float | None  # of |ratio - 1|
    same_verdict: int
    judged: int  # tasks judged in both

    def of(self, *kinds: Change) -> list[TaskChange]:
        return [change for change in self.changes if change.change in kinds]

    @property
    def worse(self) -> list[TaskChange]:
        return self.of("slower", "lost")


def compare(first: Sequence[Row], second: Sequence[Row], name: str, tolerance: float) -> Comparison:
    """A speedup changed where the intervals do not meet and the ratio is beyond the tolerance (0.02: 2 %)."""
    before = {outcome.task: outcome for outcome in outcomes(first)}
    after = {outcome.task: outcome for outcome in outcomes(second)}
    tasks = [*before, *(task for task in after if task not in before)]
    changes = tuple(_change(task, before.get(task), after.get(task), tolerance) for task in tasks)
    ratios = [change.ratio for change in changes if change.ratio is not None]
    judged = [
        change
        for change in changes
        if change.before and change.after and not change.before.unjudged and not change.after.unjudged
    ]
    return Comparison(
        name=name,
        changes=changes,
        geomean=geomean(ratios),
        median_change=quantile(sorted(abs(ratio - 1) for ratio in ratios), 0.5),
        same_verdict=sum(word(c.before.row) == word(c.after.row) for c in judged if c.before and c.after),
        judged=len(judged),
    )


def _change(task: str, before: Outcome | None, after: Outcome | None, tolerance: float) -> TaskChange:
    if before is None or after is None or before.unjudged or after.unjudged:
        return TaskChange(task, "unknown", before, after)
    if before.speedup is None or after.speedup is None:
        kind: Change = "same" if before.speedup is after.speedup else "lost" if after.speedup is None else "gained"
        return TaskChange(task, kind, before, after)
    ratio = after.speedup / before.speedup
    if abs(ratio - 1) <= tolerance or not _apart(before, after):
        return TaskChange(task, "same", before, after, ratio)
    return TaskChange(task, "faster" if ratio > 1 else "slower", before, after, ratio)


def _apart(one: Outcome, two: Outcome) -> bool:
    """Whether the intervals do not meet; a speedup without one is its own interval."""
    first = one.row.verdict.speedup_interval or (one.speedup or 0.0,) * 2
    second = two.row.verdict.speedup_interval or (two.speedup or 0.0,) * 2
    return first[1] < second[0] or second[1] < first[0]
