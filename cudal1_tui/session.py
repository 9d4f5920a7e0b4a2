"""One run as a person works with it: the view, the selection, and the decisions. No widgets, no Textual."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cudal1_core.errors import Cudal1Error

from cudal1_tui import view as views
from cudal1_tui.decisions import Decisions, Note
from cudal1_tui.view import Row, View
from cudal1_tui.words import speedup_text, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cudal1_core.events import Event
    from cudal1_core.reference import Task

    from cudal1_tui.bridge import RunHandle

Taken = Literal["overwrite", "beside"]  # what to do where the file is there already


class Session:
    """Holds the view and changes it; the workbench draws it.

    `clock` is monotonic seconds and `wall` seconds since the epoch, both given so that tests own time.
    """

    def __init__(
        self,
        run: RunHandle,
        *,
        mode: str = "manual",
        reference: Path | None = None,
        out: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.run = run
        self.mode = mode
        self.source = _read(reference)  # shown until the task has been read
        self.view = View(reference=str(reference or ""))
        self._out = out
        self._clock = clock
        self._wall = wall
        self._decisions = Decisions(run)

    @property
    def seconds(self) -> float:
        """Time from the start of the run to its end, or to now."""
        if self.view.started_at is None:
            return 0.0
        return (self.view.finished_at or self._wall()) - self.view.started_at

    @property
    def wall(self) -> float:
        return self._wall()

    @property
    def reference_source(self) -> str:
        return self.view.task.source if self.view.task else self.source

    def receive(self, events: Iterable[Event]) -> Note | None:
        """Takes in what the run has told; a sentence when that ended it."""
        from cudal1_tui.state import (
            reduce,
        )  # the events cost start-up time, so they come after the first paint

        before, now = self.view, self._clock()
        for event in events:
            self.view = reduce(self.view, event, now)
        if before.run not in ("", self.view.run):  # a watch went on with the next run
            self._decisions = Decisions(self.run)
            self.source = _read(Path(self.view.reference))
        return ending(self.view) if self.view.finished_at != before.finished_at else None

    def trouble(self, error: Exception) -> None:
        """A fault of the run, shown like any other trouble."""
        from cudal1_core.events import TroubleMet

        if isinstance(error, Cudal1Error):
            told = TroubleMet(title=error.title, meaning=error.meaning, next_step=error.next_step)
        else:
            told = TroubleMet(title="The run ended unexpectedly", meaning=f"{type(error).__name__}: {error}")
        self.receive([told])

    def put_away(self) -> None:
        """The person has read the trouble."""
        self.view = views.calm(self.view)

    def toggle_pause(self) -> Note | None:
        if not self.view.running:
            return Note("Nothing is running.", "warning")
        if self.run.paused:
            self.run.resume()
        else:
            self.run.pause()
        return None

    def more(self) -> Note:
        """One more round of a run that is done."""
        if self.view.running or self.view.started_at is None:
            return Note("The run is still going; n is for when it is done.", "warning")
        try:
            self.run.extend(1)
        except Cudal1Error as error:
            return Note(str(error).replace("\n", " "), "error")
        return Note("One more round.")

    def train(self) -> Note:
        """A step of training of the policy's model."""
        try:
            self.run.update()
        except Cudal1Error as error:
            return Note(str(error).replace("\n", " "), "error")
        if self.view.ending is not None:
            return Note("The model is trained on what has been judged; n samples from it.")
        return Note("Before the next round the model is trained on what has been judged.")

    def accept(self, taken: Taken | None = None) -> Note:
        """Writes the selected candidate. Raises FileExistsError where `taken` has to be asked for."""
        from cudal1_core import accept

        row = self._decidable()
        if isinstance(row, Note):
            return row
        reason = accept.why_not(row.verdict)
        task = self.view.task
        if reason is not None or task is None:
            return Note(f"{row.id} cannot be accepted. {reason or ''}".strip(), "warning")
        if row.decision == "kept":
            return Note(f"{row.id} is accepted already: {row.path}", "warning")
        target = self.target(task)
        if taken == "beside":
            target = accept.free_path(target)
        try:
            note = self._decisions.accept(task, row, target, self._folder, overwrite=taken == "overwrite")
        except FileExistsError:
            raise
        except Cudal1Error as error:
            return Note(str(error).replace("\n", " "), "error")
        except OSError as error:
            return Note(f"{target} cannot be written: {error.strerror}", "error")
        self._apply(row, "kept", str(target))
        return note

    def target(self, task: Task) -> Path:
        """Where accepting writes."""
        from cudal1_core.accept import accepted_path

        return self._out or accepted_path(task)

    def mark(self, decision: Literal["dismissed", "fed"]) -> Note:
        """Rejects or feeds the selected candidate."""
        row = self._decidable()
        if isinstance(row, Note):
            return row
        if decision == "fed" and row.verdict is None:
            return Note(f"{row.id} has no verdict yet; there is nothing to feed.", "warning")
        if row.decision == decision:
            return Note(f"{row.id} is {decision} already.", "warning")
        note = self._decisions.mark(row, decision)
        self._apply(row, decision, None)
        return note

    def undo(self) -> Note:
        if self._decisions.last is None:  # decisions of before a restart are in the view
            self._decisions.recall(self.view.history, self.view.rows, self.view.task, self._folder)
        past = self._decisions.last
        note = self._decisions.undo()
        if past is not None and (row := self.view.row(past.candidate)) is not None:
            self._apply(row, past.before, past.before_path)
            self.view = views.select(self.view, past.candidate)
        return note

    def move(self, direction: views.Direction) -> None:
        self.view = views.move(self.view, direction)

    def select(self, candidate: str | None) -> None:
        self.view = views.select(self.view, candidate)

    @property
    def _folder(self) -> Path | None:
        return Path(self.view.folder) if self.view.folder else None

    def _decidable(self) -> Row | Note:
        row = self.view.current
        if row is None:
            return Note("No candidate is selected.", "warning")
        if not views.takes_decisions(self.view, self._clock()):
            return Note("The selection has just moved; press the key again.", "warning")
        return row

    def _apply(self, row: Row, decision: Literal["kept", "dismissed", "fed", "none"], path: str | None) -> None:
        """Shown at once; the run tells the same again on its stream."""
        from cudal1_core.events import DecisionMade

        self.receive([DecisionMade(candidate=row.id, decision=decision, path=path)])


def ending(view: View) -> Note | None:
    """What to know at the end of a run; trouble has said why it failed."""
    if view.ending not in ("done", "budget"):
        return None
    best = view.row(view.best)
    if view.rows and all(row.round < view.round for row in view.rows):
        return Note("Nothing is left to try for this policy.", "warning")
    if best is not None:
        return Note(f"Best: {best.id}, {speedup_text(best.speedup)}. b selects it, a accepts it.")
    failures = Counter(state_of(row, None)[1] for row in view.rows)
    counts = ", ".join(f"{word} {count}" for word, count in failures.most_common())
    return Note(f"No candidate may be called best. {counts}", "warning")


def _read(reference: Path | None) -> str:
    try:
        return reference.read_text(encoding="utf-8", errors="replace") if reference else ""
    except OSError:
        return ""
