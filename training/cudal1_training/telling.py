"""Where events of a training go: the folder's log first, then whoever started this process."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import BinaryIO

from cudal1_core.events import Event, TroubleMet, to_json


class Teller:
    """Called from the trainer's thread and the referees'. `out` is None on all ranks but the first."""

    def __init__(self, log: Path, out: BinaryIO | None) -> None:
        self._log = log.open("ab", buffering=0)  # one write a line: several processes may add to it
        self._out = out
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        line = to_json(event).encode("utf-8", "replace") + b"\n"
        with self._lock:
            self._log.write(line)
            if self._out is not None:
                self._out.write(line)
                self._out.flush()

    def trouble(self, title: str, meaning: str = "", next_step: str = "") -> None:
        self(TroubleMet(title=title, meaning=meaning, next_step=next_step))
