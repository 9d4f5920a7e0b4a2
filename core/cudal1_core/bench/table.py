"""Everything a report says, as data: made once from the rows, shown as Markdown, HTML, JSON and CSV."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from cudal1_core.bench import figures as f
from cudal1_core.bench.row import Row


@dataclass(frozen=True, slots=True)
class Machine:
    """Where and how the rows were judged; more than one value where files of several were put together."""

    devices: tuple[str, ...]
    torch: tuple[str, ...]
    cuda: tuple[str, ...]
    python: tuple[str, ...]
    referees: tuple[str, ...]  # fingerprints of the referee's source
    isolation: tuple[str, ...]
    first: str  # dates, UTC
    last: str
    seconds: float  # of judging, added up over the rows


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well a second run of the same candidates agrees with the first."""

    both: int  # candidates with a verdict in both
    same: int  # with the same verdict and category
    timed: int  # accepted in both
    median_change: float | None  # median of |second / first - 1| over those
    within: int  # of them, within WITHIN
    differing: tuple[tuple[str, str, str], ...]  # task, first verdict, second verdict


@dataclass(frozen=True, slots=True)
class Report:
    """The whole table."""

    title: str
    outcomes: tuple[f.Outcome, ...]
    machine: Machine
    groups: tuple[f.Figures, ...]
    baselines: tuple[f.Figures, ...]
    wins: tuple[f.Share, ...]
    labels: tuple[f.Share, ...]
    techniques: tuple[f.Share, ...]
    named: tuple[f.Share, ...]  # techniques as the policy names them
    rejections: tuple[tuple[str, int], ...]
    agreement: Agreement | None = None

    @property
    def rejected(self) -> list[Row]:
        """Every rejected candidate that holds code."""
        return [row for row in self.rows if row.verdict.verdict == "rejected" and row.has_code]

    @property
    def without_code(self) -> list[Row]:
        return [row for row in self.rows if not row.has_code]

    @property
    def unjudged(self) -> list[Row]:
        return [row for row in self.rows if row.unjudged]

    @property
    def flawed(self) -> list[f.Outcome]:
        return [outcome for outcome in self.outcomes if outcome.flaws]

    @property
    def rows(self) -> list[Row]:
        return [row for outcome in self.outcomes for row in outcome.rows]

    @property
    def claims(self) -> list[tuple[f.Outcome, float]]:
        """Accepted tasks with the speedup that was claimed over the reference as it stands."""
        return [
            (o, o.row.claimed["eager"]) for o in self.outcomes if o.speedup is not None and "eager" in o.row.claimed
        ]


WITHIN = 0.02


def make_report(rows: Sequence[Row], title: str, second: Sequence[Row] = ()) -> Report:
    found = sorted(f.outcomes(rows), key=_place)
    return Report(
        title=title,
        outcomes=tuple(found),
        machine=_machine(rows),
        groups=tuple(f.groups(found)),
        baselines=tuple(f.by_baseline(found)),
        wins=tuple(f.by_win(found)),
        labels=tuple(f.by_label(found)),
        techniques=tuple(f.by_technique(found)),
        named=tuple(f.by_technique(found, named=True)),
        rejections=tuple(f.rejections(found)),
        agreement=agreement(rows, second) if second else None,
    )


def agreement(first: Sequence[Row], second: Sequence[Row]) -> Agreement:
    """Over candidates with the same source that both runs judged; those without code say nothing and are left out."""
    others = {(row.task, row.candidate_hash): row for row in second if row.has_code and not row.unjudged}
    pairs = [
        (row, other)
        for row in first
        if row.has_code and not row.unjudged and (other := others.get((row.task, row.candidate_hash)))
    ]
    differing = [(one.task, word(one), word(two)) for one, two in pairs if word(one) != word(two)]
    changes = sorted(
        abs(two.verdict.speedup / one.verdict.speedup - 1)
        for one, two in pairs
        if one.verdict.accepted and two.verdict.accepted and one.verdict.speedup and two.verdict.speedup
    )
    return Agreement(
        both=len(pairs),
        same=len(pairs) - len(differing),
        timed=len(changes),
        median_change=f.quantile(changes, 0.5),
        within=sum(change <= WITHIN for change in changes),
        differing=tuple(differing),
    )


def word(row: Row) -> str:
    """`accepted`, or why not: `wrong result`."""
    verdict = row.verdict
    if row.failed:
        return "no verdict"
    return "accepted" if verdict.accepted else (verdict.category or verdict.verdict).replace("_", " ")


def _place(outcome: f.Outcome) -> tuple[int, int, str]:
    level, _, number = outcome.task.removeprefix("L").partition("/")
    return (int(level), int(number), "") if level.isdigit() and number.isdigit() else (10**9, 0, outcome.task)


def _machine(rows: Sequence[Row]) -> Machine:
    judged = [row for row in rows if row.device]

    def versions(name: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.verdict.versions[name] for row in judged if name in row.verdict.versions))

    times = [row.at for row in rows if row.at]
    day = [time.strftime("%Y-%m-%d", time.gmtime(at)) for at in (min(times, default=0), max(times, default=0))]
    return Machine(
        devices=tuple(dict.fromkeys(row.device for row in judged)),
        torch=versions("torch"),
        cuda=versions("cuda"),
        python=versions("python"),
        referees=tuple(dict.fromkeys(row.referee for row in judged)),
        isolation=tuple(dict.fromkeys(layer for row in judged for layer in row.verdict.isolation)),
        first=day[0],
        last=day[1],
        seconds=sum(row.seconds for row in rows),
    )
