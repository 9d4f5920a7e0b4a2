"""The one event stream of a run: frozen facts, one JSON object a line.

The workbench, the plain progress output, `--json`, the recorded run and the tests all read these.
Every event carries `at`, the wall-clock time in seconds since the epoch at which it happened.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Literal

from cudal1_core.advice.advice import Advice
from cudal1_core.candidate import Candidate
from cudal1_core.reference import Task
from cudal1_core.verdict import Check, Verdict

# waiting: for its turn on the device; stopped: the person dismissed it before it had a verdict
Stage = Literal["queued", "building", "waiting", "checking", "timing", "stopped"]
Standing = Literal["faster", "right", "slower", "wrong", "unjudged", "gone"]  # right: as fast as the reference
Decision = Literal["kept", "dismissed", "fed", "none"]  # "none" undoes an earlier decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of all events; `name` is the word used in JSON."""

    name: ClassVar[str] = "event"
    at: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    run: str  # id of the run, also the name of its folder
    reference: str  # absolute path
    policy: str
    device: str
    rounds: int
    group: int  # candidates a round
    budget_s: float | None
    folder: str  # where events, sources and logs are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDescribed(Event):
    task: Task


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineTimed(Event):
    baseline: str  # eager, compile, compile-reduce-overhead, cuda-graph
    ms: float  # milliseconds a call


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLoading(Event):
    """A step of what a policy does before it can write; the last one is empty."""

    what: str  # "reading the weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundStarted(Event):
    round: int  # from 1
    exemplars: tuple[str, ...]  # candidate ids shown in the prompt
    prompt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenArrived(Event):
    """A piece of a candidate's text, at the time the policy produced it."""

    candidate: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateWritten(Event):
    candidate: Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStarted(Event):
    candidate: str
    stage: Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFinished(Event):
    candidate: str
    check: Check


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingSampled(Event):
    """One paired block: milliseconds a call for both sides, and the estimate so far."""

    candidate: str
    reference_ms: float
    candidate_ms: float
    speedup: float
    interval: tuple[float, float]
    blocks: int  # pairs measured so far


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsMeasured(Event):
    """All that was timed of a candidate, as it was measured, and under which conditions."""

    candidate: str
    samples: dict[str, list[tuple[float, float]]]  # way of release -> (reference, candidate) seconds a call, in order
    seeds: dict[str, str]  # hexadecimal
    before: dict[str, Any]  # what referee.conditions read before the first pair
    after: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictReached(Event):
    candidate: str
    verdict: Verdict
    seconds: float  # from the start of building to the verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceGiven(Event):
    """What reading the source suggests; no verdict rests on it. A later one replaces an earlier one."""

    candidate: str
    advice: Advice


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundFinished(Event):
    round: int
    accepted: int
    rejected: int
    best: str | None  # id of the best candidate so far in the run
    best_speedup: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionMade(Event):
    candidate: str
    decision: Decision
    path: str | None = None  # file written when a candidate was kept


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSampled(Event):
    """What the machine does at a moment; told to a screen only, never stored. None where it cannot be known."""

    gpu: str | None = None  # name; None where there is no GPU that can be read
    use: float | None = None  # percent: of the GPU, else of the processor's cores together
    used_gb: float | None = None  # memory of the GPU, else of the machine
    total_gb: float | None = None
    celsius: int | None = None
    foreign: int = 0  # other people's processes on the GPU


@dataclass(frozen=True, slots=True, kw_only=True)
class TroubleMet(Event):
    """Something went wrong that is not a candidate's failure."""

    title: str
    meaning: str = ""
    next_step: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchStarted(Event):
    """From here on every save is seen."""

    paths: tuple[str, ...]  # what was named, absolute
    references: int  # found so far
    how: str  # "inotify", "polling"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSeen(Event):
    """What a save of a watched reference, or of a module that it imports, comes to."""

    path: str  # of the reference, absolute
    state: Literal["changed", "unchanged", "unreadable", "gone"]  # unchanged: only comments or spacing differ
    message: str = ""  # file, line and reason where it cannot be used as it stands


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedJudged(Event):
    """A file that was accepted before, judged again."""

    path: str  # of the file
    reference: str  # absolute
    state: Standing
    speedup: float | None = None
    interval: tuple[float, float] | None = None
    was: float | None = None  # the speedup that its header told before
    reason: str = ""  # where it is wrong or cannot be judged


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStarted(Event):
    folder: str
    model: str
    stages: tuple[str, ...]
    tasks: int  # trained on
    held_out: int  # tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPhase(Event):
    """A part of a training: qualifying tasks, collecting code, a stage, a report."""

    stage: str  # "tasks", "sft", "self", "rl", "report"
    what: str  # in words
    total: int  # tasks or steps; 0 where it is not known
    done: int = 0  # of those, before this process began


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStepped(Event):
    stage: str
    step: int  # finished
    total: int
    metrics: dict[str, float]
    left_s: float | None = None  # of this phase, by its pace so far


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSaved(Event):
    """From here a training that is killed goes on."""

    stage: str
    step: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingReported(Event):
    path: str
    text: str  # the report, in Markdown


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    reason: Literal["done", "budget", "stopped", "failed"]
    best: str | None
    best_speedup: float | None


def _snake(word: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).lower()


EVENTS: dict[str, type[Event]] = {_snake(cls.__name__): cls for cls in Event.__subclasses__()}
for _word, _cls in EVENTS.items():
    _cls.name = _word


def to_json(event: Event) -> str:
    """One line, no newline."""
    return json.dumps({"event": event.name, **asdict(event)}, ensure_ascii=False)


_NESTED: dict[str, Any] = {
    "task": Task.from_json,
    "verdict": Verdict.from_json,
    "check": lambda data: Check(**data),
    "advice": Advice.from_json,
}


def from_json(line: str) -> Event:
    """Inverse of `to_json`. Raises ValueError for a line that is not an event."""
    data = json.loads(line)
    word = data.pop("event", None)
    if word not in EVENTS:
        raise ValueError(f"not an event: {word!r}")
    cls = EVENTS[word]
    known = {f.name for f in fields(cls)}
    values = {key: value for key, value in data.items() if key in known}
    for key, value in values.items():
        if key == "candidate" and isinstance(value, dict):
            value["techniques"] = tuple(value["techniques"])
            value["exemplars"] = tuple(value["exemplars"])
            values[key] = Candidate(**value)
        elif key in _NESTED:
            values[key] = _NESTED[key](value)
        elif isinstance(value, list):
            values[key] = tuple(value)
    return cls(**values)
