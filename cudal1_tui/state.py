"""The pure function that makes the next view from an event of a run."""

from __future__ import annotations

from dataclasses import replace

from cudal1_core.events import (
    AcceptedJudged,
    AdviceGiven,
    BaselineTimed,
    CandidateWritten,
    CheckFinished,
    DecisionMade,
    Event,
    MachineSampled,
    PairsMeasured,
    PolicyLoading,
    ReferenceSeen,
    RoundStarted,
    RunFinished,
    RunStarted,
    StageStarted,
    TaskDescribed,
    TimingSampled,
    TokenArrived,
    TroubleMet,
    VerdictReached,
    WatchStarted,
)

from cudal1_tui.view import SETTLE_S, Asked, Decided, Row, View
from cudal1_tui.watch_view import watched


def reduce(view: View, event: Event, now: float) -> View:
    """The view after `event`; `now` is monotonic time in seconds and only dates moves of the selection."""
    match event:
        case RunStarted():
            if view.run not in ("", event.run):  # a watch goes on with the next run
                view = View(watch=view.watch, machine=view.machine)
            elif (
                view.started_at is not None and view.finished_at is not None
            ):  # a run that goes on; pauses do not count
                view = replace(view, started_at=view.started_at + event.at - view.finished_at)
            return replace(
                view,
                run=event.run,
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
            idle = event.at - view.finished_at if view.finished_at else 0.0  # does not count as time spent
            started_at = view.started_at + idle if view.started_at is not None else None
            rounds = max(view.rounds, event.round)
            view = replace(view, round=event.round, rounds=rounds, started_at=started_at, finished_at=None, ending=None)
            return replace(view, prompts=(*view.prompts, Asked(event.round, event.exemplars, event.prompt)))
        case RunFinished():
            return replace(view, ending=event.reason, finished_at=event.at)
        case PolicyLoading():
            return replace(view, loading=event.what)
        case MachineSampled():
            return replace(view, machine=event)
        case TroubleMet():
            return replace(view, trouble=event)
        case WatchStarted() | ReferenceSeen() | AcceptedJudged():
            return replace(view, watch=watched(view.watch, event))
        case _:
            return _reduce_row(view, event, now)


def _reduce_row(view: View, event: Event, now: float) -> View:
    match event:
        case TokenArrived():
            view, row = _open(view, event.candidate, now)
            since = event.at if row.since is None else row.since
            return _put(view, replace(row, text=row.text + event.text, since=since))
        case CandidateWritten():
            view, row = _open(view, event.candidate.id, now)
            text = event.candidate.text or row.text
            written = replace(row, candidate=event.candidate, text=text, round=event.candidate.round)
            return _put(view, replace(written, activity="queued") if row.activity == "writing" else written)
        case StageStarted():
            view, row = _open(view, event.candidate, now)
            return _put(view, replace(row, activity=event.stage, since=event.at))
        case CheckFinished():
            view, row = _open(view, event.candidate, now)
            return _put(view, replace(row, checks=(*row.checks, event.check)))
        case TimingSampled():
            view, row = _open(view, event.candidate, now)
            return _put(view, _timed(row, event))
        case PairsMeasured():
            view, row = _open(view, event.candidate, now)
            return _put(view, replace(row, mhz=_clocks(event)))
        case AdviceGiven():
            view, row = _open(view, event.candidate, now)
            return _put(view, replace(row, advice=event.advice))
        case VerdictReached():
            view, row = _open(view, event.candidate, now)
            return _with_best(_put(view, _judged(row, event)))
        case DecisionMade():
            row_or_none = view.row(event.candidate)
            if row_or_none is None:
                return view
            decided = replace(row_or_none, decision=event.decision, path=event.path)
            if (decided.decision, decided.path) != (row_or_none.decision, row_or_none.path):  # told twice, made once
                made = Decided(event.at, event.candidate, event.decision, event.path)
                view = replace(view, history=(*view.history, made))
            return _with_best(_put(view, decided))
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


def _clocks(event: PairsMeasured) -> tuple[int, int] | None:
    """The GPU's, else the processor's; None where the system does not tell."""
    before, after = (
        int(moment.get("gpu", {}).get("sm_mhz") or moment.get("cpu_mhz") or 0) for moment in (event.before, event.after)
    )
    return (before, after) if before and after else None


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
    best = view.rows.fastest
    return replace(view, best=best.id if best else None)


def _open(view: View, candidate: str, now: float) -> tuple[View, Row]:
    """The row of a candidate, made at the end of the list where there is none yet."""
    row = view.row(candidate)
    if row is not None:
        return view, row
    row = Row(candidate, max(view.round, 1))
    view = replace(view, rows=view.rows.put(row))
    if view.following:
        view = replace(view, selected=candidate, settled_at=now + SETTLE_S)
    return view, row


def _put(view: View, row: Row) -> View:
    return replace(view, rows=view.rows.put(row))
