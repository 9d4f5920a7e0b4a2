"""What a training adds to the archive: each task is a run of it there, so that the workbench finds the code too."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable

from cudal1_core.archive import Archive
from cudal1_core.events import Event, RunStarted, TaskDescribed
from cudal1_core.reference import Task

from cudal1_training.folder import PausedError

TRIES = 5  # of a write that another process blocks; the archive itself waits three seconds each


class Book:
    """`name` is unique to this process: a training that goes on writes new runs beside its old ones."""

    def __init__(self, archive: Archive, name: str, policy: str, folder: str) -> None:
        self.archive = archive
        self._name = name
        self._policy = policy
        self._folder = folder
        self._runs: dict[str, str] = {}  # source hash of a task -> run

    def run_of(self, task: Task) -> str:
        """The run in the archive that holds this process's work on the task."""
        key = f"{task.source_hash}/{task.model}"
        if key not in self._runs:
            run = f"{self._name}-t{len(self._runs) + 1}"
            started = RunStarted(
                run=run,
                reference=task.path,
                policy=self._policy,
                device=task.device,
                rounds=0,
                group=0,
                budget_s=None,
                folder=self._folder,
            )
            self._insist(lambda: self.archive.record(run, started))
            self._insist(lambda: self.archive.record(run, TaskDescribed(task=task)))
            self._runs[key] = run
        return self._runs[key]

    def record(self, task: Task, event: Event) -> None:
        """Raises PausedError where the archive cannot be written."""
        run = self.run_of(task)
        self._insist(lambda: self.archive.record(run, event))

    def _insist(self, write: Callable[[], None]) -> None:
        for attempt in range(TRIES):
            try:
                write()
                return
            except sqlite3.OperationalError as error:
                if attempt + 1 == TRIES:
                    raise PausedError(
                        f"The archive {self.archive.path} cannot be written",
                        str(error),
                        "The training is kept; when the archive can be written, the same command goes on.",
                    ) from error
                time.sleep(0.5)
