"""A stored run as it can go on: what it found, what was decided, and what was left undone."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from cudal1_core.candidate import Candidate
from cudal1_core.errors import UsageError
from cudal1_core.events import (
    CandidateWritten,
    CheckFinished,
    Decision,
    DecisionMade,
    Event,
    RoundStarted,
    RunFinished,
    RunStarted,
    StageStarted,
    TaskDescribed,
    TokenArrived,
    TroubleMet,
    VerdictReached,
    from_json,
)
from cudal1_core.policies.base import Judged
from cudal1_core.reference import Task


@dataclass(slots=True)
class Recalled:
    """Everything that a run needs to go on; ids are those of its events."""

    started: RunStarted
    events: list[Event] = field(default_factory=list)  # as they are shown again
    task: Task | None = None
    judged: dict[str, Judged] = field(default_factory=dict)
    decisions: dict[str, Decision] = field(default_factory=dict)
    unjudged: list[Candidate] = field(default_factory=list)  # written, in order
    round: int = 0  # last that began
    written: int = 0  # highest number of a candidate


def recall(path: Path) -> Recalled:
    """Reads `events.jsonl`. A last line that was cut off is left out. Raises UsageError."""
    try:
        lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    events: list[Event] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            events.append(from_json(line))
        except (ValueError, TypeError, KeyError) as error:
            if number < len(lines):
                raise UsageError(f"{path}, line {number}: not an event", str(error)) from error
    started = next((event for event in events if isinstance(event, RunStarted)), None)
    if started is None:
        raise UsageError(f"{path} holds no run", "It has no run_started event.")
    return _told(Recalled(started), events)


def _told(run: Recalled, events: list[Event]) -> Recalled:
    candidates: dict[str, Candidate] = {}
    for event in events:
        match event:
            case TaskDescribed():
                run.task = event.task
            case RoundStarted():
                run.round = event.round
            case TokenArrived():
                run.written = max(run.written, _number(event.candidate))
            case CandidateWritten():
                candidates[event.candidate.id] = event.candidate
                run.written = max(run.written, _number(event.candidate.id))
            case VerdictReached() if event.candidate in candidates:
                run.judged[event.candidate] = Judged(candidates[event.candidate], event.verdict)
            case DecisionMade():
                run.decisions[event.candidate] = event.decision
    run.unjudged = [
        candidate
        for id, candidate in candidates.items()
        if id not in run.judged and run.decisions.get(id) != "dismissed"
    ]
    run.events = [event for event in events if not _is_left_out(event, run)]
    if not isinstance(run.events[-1], RunFinished):  # it was killed
        run.events += [StageStarted(candidate=one.id, stage="queued", at=events[-1].at) for one in run.unjudged]
        run.events.append(RunFinished(reason="stopped", best=None, best_speedup=None, at=events[-1].at))
    return run


def _is_left_out(event: Event, run: Recalled) -> bool:
    """What says nothing any more: a written candidate and a verdict hold what led to them, which is most of a run."""
    match event:
        case TroubleMet() | TokenArrived():  # of another day; cut off, or written whole
            return True
        case StageStarted():
            return event.candidate in run.judged
        case CheckFinished():
            return event.candidate in run.judged and bool(run.judged[event.candidate].verdict.checks)
        case _:
            return False


def _number(candidate: str) -> int:
    digits = candidate.lstrip("c")
    return int(digits) if digits.isascii() and digits.isdigit() else 0
