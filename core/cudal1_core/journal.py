"""Writes every event of a run down before anyone sees it: log, candidate's file, archive."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import BinaryIO

from cudal1_core.archive import Archive
from cudal1_core.events import CandidateWritten, Event, TroubleMet, to_json
from cudal1_core.paths import RunFolder


class Journal:
    """A place that cannot be written is given up after the first failure, and the run goes on in memory."""

    def __init__(self, folder: RunFolder, archive: Archive, trouble: str = "") -> None:
        self._folder = folder
        self._archive = archive
        self._stream: BinaryIO | None = None
        self._sinks: list[Callable[[Event], None]] = [self._to_archive]
        if folder.path is not None:
            self._sinks += [self._to_source, self._to_log]
        self._trouble = folder.trouble or trouble  # known before the first event
        self._told = False

    def record(self, event: Event) -> TroubleMet | None:
        """Stores the event; the first time something cannot be stored, says so."""
        for sink in tuple(self._sinks):
            try:
                sink(event)
            except (OSError, sqlite3.Error) as error:
                self._sinks.remove(sink)
                self._trouble = self._trouble or str(error)
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
        self._archive.record(self._folder.id, event)

    def _to_source(self, event: Event) -> None:
        if isinstance(event, CandidateWritten) and (path := self._folder.source(event.candidate.id)):
            path.write_text(event.candidate.source, encoding="utf-8", errors="replace")

    def _to_log(self, event: Event) -> None:
        if self._stream is None and self._folder.events is not None:
            self._stream = self._folder.events.open("ab", buffering=0)
        if self._stream is not None:
            self._stream.write(to_json(event).encode("utf-8", "replace") + b"\n")
