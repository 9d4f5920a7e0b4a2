"""Textual's driver, made to outlive its terminal."""

from __future__ import annotations

import contextlib
from typing import IO, TYPE_CHECKING, Any, cast

from textual.drivers.linux_driver import LinuxDriver

if TYPE_CHECKING:
    from io import TextIOWrapper


class TerminalDriver(LinuxDriver):
    """What a terminal that is gone does not take is dropped.

    Textual's thread that writes would end at the first failure, and whoever hands it more then waits for ever.
    """

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        if self._file is not None:
            self._file = cast("TextIOWrapper", _Dropping(self._file))


class _Dropping:
    """As much of a file as the driver and its thread use."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()
