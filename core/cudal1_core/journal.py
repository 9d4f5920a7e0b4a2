"""Writes every event of a run down before anyone sees it: log, candidate's file, archive."""

from __future__ import annotations

import fcntl
import sqlite3
from collections import deque
from collections.abc import Callable
from typing import BinaryIO

from cudal1_core.archive import Archive, is_held
from cudal1_core.errors import UsageError
from cudal1_core.events import CandidateWritten, Event, TroubleMet, to_json
from cudal1_core.paths import RunFolder


class Journal:
    """A place that cannot be written is given up after the first failure, and the run goes on in memory.

    An archive that another process holds is not given up: what waits for it enters it as soon as it is free. The log
    is locked as long as the run goes on, so that no other process goes on with the same run.
    """

    def __init__(self, folder: RunFolder, archive: Archive, trouble: str = "") -> None:
        self._folder = folder
        self._archive = archive
        self._stream: BinaryIO | None = None
        self._behind: deque[Event] = deque()  # of the archive
        self._sinks: list[Callable[[Event], None]] = [self._to_archive]
        if folder.path is not None:
            self._sinks += [self._to_source, self._to_log]
        self._trouble = folder.trouble or trouble  # known before the first event
        self._told = False
        self._told_held = False

    def claim(self) -> None:
        """Opens the log of a run that goes on. Raises UsageError where another process is at work on it."""
        if self._folder.events is None:
            return
        try:
            self._stream = self._folder.events.open("ab", buffering=0)
        except OSError as error:
            raise UsageError(f"{self._folder.events} cannot be written: {error.strerror}") from error
        if not _lock(self._stream):
            self.close()
            raise UsageError(
                f"The run {self._folder.id} is open in another process", "", "Leave it there, or start a new run."
            )

    def record(self, event: Event) -> TroubleMet | None:
        """Stores the event; the first time something cannot be stored, says so."""
        for sink in tuple(self._sinks):
            try:
                sink(event)
            except (OSError, sqlite3.Error) as error:
                self._sinks.remove(sink)
                self._trouble = self._trouble or str(error)
        if self._behind and not self._told_held:
            self._told_held = True
            return TroubleMet(
                title="Another process holds the archive",
                meaning="What is found is kept in the run's folder meanwhile, and enters the archive when it is free.",
                next_step="Look for another cudal1-tui, or for a program that has .cudal1/archive.db open.",
            )
        if not self._trouble or self._told:
            return None
        self._told = True
        return TroubleMet(
            title="This run is not being stored",
            meaning=f"{self._trouble}. Work goes on in memory; what is shown is lost when the program ends.",
            next_step="Free some space, or start from a folder that can be written.",
        )

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _to_archive(self, event: Event) -> None:
        self._behind.append(event)
        try:
            while self._behind:
                self._archive.record(self._folder.id, self._behind[0], patient=not self._told_held)
                self._behind.popleft()
        except sqlite3.Error as error:
            if not is_held(error):
                self._behind.clear()
                raise

    def _to_source(self, event: Event) -> None:
        if isinstance(event, CandidateWritten) and (path := self._folder.source(event.candidate.id)):
            path.write_text(event.candidate.source, encoding="utf-8", errors="replace")

    def _to_log(self, event: Event) -> None:
        if self._stream is None and self._folder.events is not None:
            self._stream = self._folder.events.open("ab", buffering=0)
            _lock(self._stream)
        if self._stream is not None:
            self._stream.write(to_json(event).encode("utf-8", "replace") + b"\n")


def is_at_work(folder: RunFolder) -> bool:
    """Whether a process is writing the run now."""
    if folder.events is None or not folder.events.exists():
        return False
    try:
        with folder.events.open("ab") as stream:
            return not _lock(stream)
    except OSError:
        return False


def _lock(stream: BinaryIO) -> bool:
    """False where another process has it; file systems that know no locks let everybody in."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
