"""What is drawn, as frozen data, and the pure function that makes it from the events of a run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from cudal1_core.events import (
    BaselineTimed,
    CandidateWritten,
    CheckFinished,
    DecisionMade,
    Event,
    RoundStarted,
    RunFinished,
    RunStarted,
    StageStarted,
    TaskDescribed,
    TimingSampled,
    TokenArrived,
    TroubleMet,
    VerdictReached,
)

if TYPE_CHECKING:
    from cudal1_core.candidate import Candidate
    from cudal1_core.events import Decision
    from cudal1_core.reference import Task
    from cudal1_core.verdict import Check, Verdict

Activity = Literal["writing", "queued", "building", "checking", "timing", "judged"]
Direction = Literal["up", "down", "top", "newest"]

SETTLE_S = 0.3  # a row that moved under the cursor takes no decision for this long


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate as it stands. Times are milliseconds a call."""

    id: str
    round: int
    activity: Activity = "writing"
    text: str = ""  # the answer so far
    candidate: Candidate | None = None  # once written
    checks: tuple[Check, ...] = ()
    ratios: tuple[float, ...] = ()  # reference / candidate, one a paired block
    speedup: float | None = None
    interval: tuple[float, float] | None = None
    reference_ms: float | None = None
    candidate_ms: float | None = None
    blocks: int = 0
    verdict: Verdict | None = None
    seconds: float | None = None  # from building to the verdict
    decision: Decision = "none"
    path: str | None = None  # file written when it was accepted by the person

    @property
    def source(self) -> str:
        """The code where it is known, else the answer so far."""
        return self.candidate.source if self.candidate and self.candidate.source else self.text

    @property
    def can_be_best(self) -> bool:
        verdict = self.verdict
        return (
            verdict is not None
            and verdict.accepted
            and verdict.speedup is not None
            and "not_drop_in" not in verdict.labels
            and self.decision != "dismissed"
        )


@dataclass(frozen=True, slots=True)
class View:
    """Everything the workbench shows of a run."""

    reference: str = ""  # path
    policy: str = ""
    device: str = ""
    rounds: int = 0
    round: int = 0  # 0 before the first
    group: int = 0
    folder: str = ""
    started_at: float | None = None  # wall clock, as events carry it
    finished_at: float | None = None
    ending: str | None = None  # done, budget, stopped, failed
    task: Task | None = None
    baselines: dict[str, float] = field(default_factory=dict)  # name -> ms a call
    rows: tuple[Row, ...] = ()  # in order of writing; never reordered under the person's cursor
    best: str | None = None
    trouble: TroubleMet | None = None  # until it is put away
    selected: str | None = None
    following: bool = True  # the selection goes to each new candidate until the person moves
    settled_at: float = 0.0  # monotonic time from which the selected row takes decisions

    def row(self, candidate: str | None) -> Row | None:
        return next((row for row in self.rows if row.id == candidate), None)

    @property
    def current(self) -> Row | None:
        return self.row(self.selected)

    @property
    def running(self) -> bool:
        return self.started_at is not None and self.ending is None


def reduce(view: View, event: Event, now: float) -> View:
    """The view after `event`; `now` is monotonic time in seconds and only dates moves of the selection."""
    match event:
        case RunStarted():
            return replace(
                view,
                reference=event.reference,
                policy=event.policy,
                device=event.device,
                rounds=event.rounds,
                group=event.group,
                folder=event.folder,
                started_at=view.started_at or event.at,
                finished_at=None,
                ending=None,
            )
        case TaskDescribed():
            return replace(view, task=event.task)
        case BaselineTimed():
            return replace(view, baselines={**view.baselines, event.baseline: event.ms})
        case RoundStarted():
            rounds = max(view.rounds, event.round)
            return replace(view, round=event.round, rounds=rounds, finished_at=None, ending=None)
        case RunFinished():
            return replace(view, ending=event.reason, finished_at=event.at)
        case TroubleMet():
            return replace(view, trouble=event)
        case _:
            return _reduce_row(view, event, now)


def _reduce_row(view: View, event: Event, now: float) -> View:
    match event:
        case TokenArrived():
            view, row = _open(view, event.candidate, now)
            return _put(view, replace(row, text=row.text + event.text))
        case CandidateWritten():
            view, row = _open(view, event.candidate.id, now)
            text = event.candidate.text or row.text
            written = replace(row, candidate=event.candidate, text=text, round=event.candidate.round)
            return _put(view, replace(written, activity="queued") if row.activity == "writing" else written)
        case StageStarted():
            view, row = _open(view, event.candidate, now)
            return _put(view, replace(row, activity=event.stage))
        case CheckFinished():
            view, row = _open(view, event.candidate, now)
            return _put(view, replace(row, checks=(*row.checks, event.check)))
        case TimingSampled():
            view, row = _open(view, event.candidate, now)
            return _put(view, _timed(row, event))
        case VerdictReached():
            view, row = _open(view, event.candidate, now)
            return _with_best(_put(view, _judged(row, event)))
        case DecisionMade():
            row_or_none = view.row(event.candidate)
            if row_or_none is None:
                return view
            return _with_best(_put(view, replace(row_or_none, decision=event.decision, path=event.path)))
        case _:
            return view


def _timed(row: Row, event: TimingSampled) -> Row:
    ratio = event.reference_ms / event.candidate_ms if event.candidate_ms > 0 else 0.0
    return replace(
        row,
        ratios=(*row.ratios, ratio),
        speedup=event.speedup,
        interval=event.interval,
        reference_ms=event.reference_ms,
        candidate_ms=event.candidate_ms,
        blocks=event.blocks,
    )


def _judged(row: Row, event: VerdictReached) -> Row:
    verdict = event.verdict
    return replace(
        row,
        activity="judged",
        verdict=verdict,
        seconds=event.seconds,
        checks=verdict.checks or row.checks,
        speedup=verdict.speedup,
        interval=verdict.speedup_interval,
        reference_ms=verdict.reference_ms,
        candidate_ms=verdict.candidate_ms,
    )


def _with_best(view: View) -> View:
    """The fastest that may be called best; the earlier one where two are as fast."""
    fit = [row for row in view.rows if row.can_be_best]
    best = max(fit, key=lambda row: row.speedup or 0.0, default=None)
    return replace(view, best=best.id if best else None)


def _open(view: View, candidate: str, now: float) -> tuple[View, Row]:
    """The row of a candidate, made at the end of the list where there is none yet."""
    row = view.row(candidate)
    if row is not None:
        return view, row
    row = Row(candidate, max(view.round, 1))
    view = replace(view, rows=(*view.rows, row))
    if view.following:
        view = replace(view, selected=candidate, settled_at=now + SETTLE_S)
    return view, row


def _put(view: View, row: Row) -> View:
    return replace(view, rows=tuple(row if old.id == row.id else old for old in view.rows))


def move(view: View, direction: Direction) -> View:
    """The selection after a key of the person; only `newest` follows new candidates again."""
    if not view.rows:
        return view
    ids = [row.id for row in view.rows]
    at = ids.index(view.selected) if view.selected in ids else -1
    to = {"up": max(at - 1, 0), "down": min(at + 1, len(ids) - 1), "top": 0, "newest": len(ids) - 1}
    return replace(view, selected=ids[to[direction]], following=direction == "newest", settled_at=0.0)


def select(view: View, candidate: str | None) -> View:
    """The selection put on one candidate by the person."""
    if view.row(candidate) is None:
        return view
    return replace(view, selected=candidate, following=False, settled_at=0.0)


def takes_decisions(view: View, now: float) -> bool:
    """False where the selected row came under the cursor by itself a moment ago."""
    return view.current is not None and now >= view.settled_at


def calm(view: View) -> View:
    """The trouble put away."""
    return replace(view, trouble=None)
