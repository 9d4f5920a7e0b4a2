"""`cudal1-tui train watch DIR`: a training in the workbench, while it runs or afterwards.

Decisions go to the archive, from which the training draws its next prompts.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cudal1_core.archive import Archive, ArchiveError
from cudal1_core.errors import UsageError
from cudal1_core.events import (
    DecisionMade,
    Event,
    PolicyLoading,
    RunStarted,
    TrainingPhase,
    TrainingStepped,
    TroubleMet,
    from_json,
)

if TYPE_CHECKING:
    from cudal1_core.events import Decision

EVENTS = "events.jsonl"
RECENT = 1 << 20  # bytes of a long log that are shown at first; candidates before that are not
LOOK_S = 0.2


class WatchedTraining:
    """The events of a training's folder as a run that the workbench shows."""

    paused = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._path = folder / EVENTS
        self._own: deque[Event] = deque()  # what is told from here
        self._stopped = False

    async def events(self) -> AsyncIterator[Event]:
        """What was told lately, then what comes, until the training ends or the person leaves."""
        with self._path.open("rb") as log:
            for event in _recent(log.readline(), self._path.stat().st_size):
                yield event
            if (size := self._path.stat().st_size) > RECENT:
                log.seek(size - RECENT)
                log.readline()
            rest = b""
            while not self._stopped:
                while self._own:
                    yield self._own.popleft()
                piece = log.read(1 << 16)
                if not piece:
                    await asyncio.sleep(LOOK_S)
                    continue
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    for event in shown(line):
                        yield event

    def pause(self) -> None:
        """A training that is looked at is not paused from here."""

    def resume(self) -> None:
        """Nothing is paused."""

    def decide(self, candidate_id: str, decision: Decision, path: Path | None = None) -> None:
        """Kept in the training's archive; what is fed is shown in later prompts, what is dismissed never."""
        event = DecisionMade(candidate=candidate_id, decision=decision, path=str(path) if path else None)
        try:
            why = self._keep(event)
        except (OSError, ValueError, KeyError, sqlite3.Error, ArchiveError) as error:
            why = str(error)
        if why:
            self._own.append(TroubleMet(title=f"The decision on {candidate_id} is not kept", meaning=why))

    def _keep(self, event: DecisionMade) -> str:
        """Why it cannot be kept, or nothing."""
        state = json.loads((self._folder / "state.json").read_text("utf-8"))
        archive = Archive(Path(state["archive"]))
        try:
            run = archive.run_of(str(self._folder), event.candidate)
            if run is None:
                return "It is of a held-out task, from which nothing is learned, or has no verdict yet."
            archive.record(run, event)
        finally:
            archive.close()
        return ""

    def extend(self, rounds: int) -> None:
        raise UsageError("A training goes on by its own command", "", "cudal1-tui train, as it was started.")

    def update(self) -> None:
        raise UsageError("This is a training already", "", "It goes on by its own command.")

    async def stop(self) -> None:
        """Leaves the training alone."""
        self._stopped = True


def shown(line: bytes) -> Iterator[Event]:
    """A line of the log as the workbench takes it; how far the training is comes as what its policy does."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        event = from_json(line.decode("utf-8", "replace"))
        if isinstance(event, TrainingPhase):
            yield PolicyLoading(at=event.at, what=f"in {event.stage}: {event.what}")
        elif isinstance(event, TrainingStepped):
            left = f", {round(event.left_s / 60)} min left" if event.left_s is not None else ""
            yield PolicyLoading(at=event.at, what=f"at {event.stage} {event.step} of {event.total}{left}")
        else:
            yield event


def main(folder: Path) -> int:
    """Raises UsageError."""
    if not (folder / EVENTS).is_file():
        raise UsageError(
            f"{folder} holds no training", f"There is no {EVENTS}.", "Name the folder that `train --out` was given."
        )
    from cudal1_tui.cli import why_no_screen

    if reason := why_no_screen():
        raise UsageError(f"train watch needs a terminal: {reason}", "", f"The events are in {folder / EVENTS}.")
    from cudal1_tui import app
    from cudal1_tui.settings import user_settings

    settings, problems = user_settings()
    screen = app.WorkbenchApp(
        WatchedTraining(folder), mode="training", theme=settings.theme, settings=settings,
        notices=[str(problem) for problem in problems],
    )  # fmt: skip
    return app.main(screen, mouse=settings.mouse)


def _recent(first: bytes, size: int) -> Iterator[Event]:
    """The start of the run, which a long log's end no longer holds."""
    for event in shown(first):
        if isinstance(event, RunStarted) or size <= RECENT:
            yield event
