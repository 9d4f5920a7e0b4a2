"""The file a bench writes: rows as JSON Lines, appended as they come, so that a killed run goes on."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from cudal1_core.bench.row import Row
from cudal1_core.errors import UsageError
from cudal1_core.sources import read_rows


class Results:
    """One bench at a time appends; use as a context. Raises UsageError.

    A row is one write, so that a kill tears at most the last line, which is cut off when the file is opened again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = []
        self._fd = -1

    def __enter__(self) -> Results:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._close()
            raise UsageError(
                f"{self.path} is being written by another bench", "", "Wait for it, or choose another --out."
            ) from error
        except OSError as error:
            self._close()
            raise UsageError(f"{self.path} cannot be written", error.strerror or str(error)) from error
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        try:
            self.rows = _parse(content[:whole], self.path)
        except UsageError:
            self._close()
            raise
        os.ftruncate(self._fd, whole)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def add(self, more: Sequence[Row]) -> None:
        """Rows that belong together are written together. Raises UsageError, also where devices would be mixed."""
        for row in more:
            self._check_device(row)
        data = b"".join(row.to_json().encode() + b"\n" for row in more)
        size = os.fstat(self._fd).st_size
        try:
            if os.write(self._fd, data) < len(data):
                os.ftruncate(self._fd, size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise UsageError(f"{self.path} cannot be written", error.strerror or str(error)) from error
        self.rows += more

    def _check_device(self, row: Row) -> None:
        other = next((old for old in self.rows if old.device and row.device and _machine(old) != _machine(row)), None)
        if other is not None:
            raise UsageError(
                f"{self.path} holds rows from {_machine(other)}",
                f"This machine is {_machine(row)}; a table of both would compare what cannot be compared.",
                "Choose another --out, and put the two side by side with `cudal1-tui bench compare`.",
            )

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def read_results(paths: Sequence[Path]) -> list[Row]:
    """Rows of several files together (parts of one table); of rows on the same candidate the newest counts.

    Raises UsageError.
    """
    rows: list[Row] = []
    for path in paths:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UsageError(f"{path} cannot be read", error.strerror or str(error)) from error
        rows += _parse(content[: content.rfind(b"\n") + 1], path)
    if not rows:
        raise UsageError(
            f"{', '.join(map(str, paths))}: no row of a bench in it", "", "Make one: cudal1-tui bench SUITE"
        )
    return newest(rows)


def newest(rows: Sequence[Row]) -> list[Row]:
    """The last row of each task and candidate, in order of tasks' first rows."""
    last = {(row.task, row.policy, row.candidate): row for row in rows}
    # A policy's later run of a task replaces all candidates of the one before.
    keys = {(row.task, row.policy): row.key for row in rows if row.policy}
    return [row for row in last.values() if not row.policy or row.key == keys[row.task, row.policy]]


def _parse(content: bytes, path: Path) -> list[Row]:
    found = []
    for number, data in read_rows(content, path, UsageError):
        try:
            found.append(Row.of(data))
        except ValueError as error:
            raise UsageError(f"{path}:{number}: not a row of a bench", str(error), "Choose another file.") from error
    return found


def _machine(row: Row) -> str:
    versions = row.verdict.versions
    return f"{row.device} with torch {versions.get('torch', '?')}, CUDA {versions.get('cuda', '?')}"
