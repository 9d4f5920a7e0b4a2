"""What is drawn, as frozen data, and the moves of the selection that a person makes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from cudal1_tui.rows import Rows

if TYPE_CHECKING:
    from cudal1_core.advice.advice import Advice
    from cudal1_core.candidate import Candidate
    from cudal1_core.events import Decision, MachineSampled, TroubleMet
    from cudal1_core.reference import Task
    from cudal1_core.verdict import Check, Verdict

    from cudal1_tui.watch_view import Watched

Activity = Literal["writing", "queued", "building", "waiting", "checking", "timing", "stopped", "judged"]
Direction = Literal["up", "down", "top", "newest"]

SETTLE_S = 0.3  # a row that moved under the cursor takes no decision for this long


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate as it stands. Times are milliseconds a call."""

    id: str
    round: int
    activity: Activity = "writing"
    since: float | None = None  # wall clock at which the activity began
    text: str = ""  # the answer so far
    candidate: Candidate | None = None  # once written
    checks: tuple[Check, ...] = ()
    ratios: tuple[float, ...] = ()  # reference / candidate, one a paired block
    speedup: float | None = None
    interval: tuple[float, float] | None = None
    reference_ms: float | None = None
    candidate_ms: float | None = None
    blocks: int = 0
    mhz: tuple[int, int] | None = None  # the device's clock before and after timing
    verdict: Verdict | None = None
    seconds: float | None = None  # from building to the verdict
    decision: Decision = "none"
    path: str | None = None  # file written when it was accepted by the person
    advice: Advice | None = None  # what reading its source suggests

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
class Asked:
    """What the policy was asked in a round."""

    round: int
    exemplars: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision of the person, at a time in seconds since the epoch."""

    at: float
    candidate: str
    decision: Decision
    path: str | None


@dataclass(frozen=True, slots=True)
class View:
    """Everything the workbench shows of a run."""

    run: str = ""  # id
    watch: Watched | None = None  # where saves start runs
    reference: str = ""  # path
    policy: str = ""
    device: str = ""
    loading: str = ""  # what the policy does before it can write
    rounds: int = 0
    round: int = 0  # 0 before the first
    group: int = 0
    folder: str = ""
    started_at: float | None = None  # wall clock, as events carry it
    finished_at: float | None = None
    ending: str | None = None  # done, budget, stopped, failed
    task: Task | None = None
    baselines: dict[str, float] = field(default_factory=dict)  # name -> ms a call
    rows: Rows = field(default_factory=Rows)  # in order of writing; never reordered under the person's cursor
    best: str | None = None
    prompts: tuple[Asked, ...] = ()  # one a round
    history: tuple[Decided, ...] = ()  # decisions, oldest first
    machine: MachineSampled | None = None  # the newest sample
    trouble: TroubleMet | None = None  # until it is put away
    selected: str | None = None
    following: bool = True  # the selection goes to each new candidate until the person moves
    settled_at: float = 0.0  # monotonic time from which the selected row takes decisions

    def row(self, candidate: str | None) -> Row | None:
        return self.rows.find(candidate)

    @property
    def current(self) -> Row | None:
        return self.row(self.selected)

    @property
    def running(self) -> bool:
        return self.started_at is not None and self.ending is None


def move(view: View, direction: Direction) -> View:
    """The selection after a key of the person; only `newest` follows new candidates again."""
    if not view.rows:
        return view
    place = view.rows.place(view.selected)
    at, last = -1 if place is None else place, len(view.rows) - 1
    to = {"up": max(at - 1, 0), "down": min(at + 1, last), "top": 0, "newest": last}
    return replace(view, selected=view.rows[to[direction]].id, following=direction == "newest", settled_at=0.0)


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
