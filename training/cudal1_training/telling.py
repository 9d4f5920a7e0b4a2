"""Where events of a training go: the folder's log first, then whoever started this process."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import BinaryIO

from cudal1_core.events import (
    Event,
    TrainingPhase,
    TrainingReported,
    TrainingSaved,
    TrainingStarted,
    TrainingStepped,
    TroubleMet,
    to_json,
)

# What one process tells for all.
_ONCE = (TrainingPhase, TrainingReported, TrainingSaved, TrainingStarted, TrainingStepped)


class Teller:
    """Called from the trainer's thread and the referees'. `out` is None on all ranks but the first."""

    def __init__(self, log: Path, out: BinaryIO | None) -> None:
        self._log = log.open("ab", buffering=0)  # one write a line: several processes may add to it
        self._out = out
        self._lock = threading.Lock()

    @property
    def leads(self) -> bool:
        """Whether this is the process that speaks for all."""
        return self._out is not None

    def __call__(self, event: Event) -> None:
        if self._out is None and isinstance(event, _ONCE):
            return
        if self._out is None and isinstance(event, TroubleMet):  # nobody else hears of it
            print(f"{event.title}\n{event.meaning}\n{event.next_step}", file=sys.stderr, flush=True)
        line = to_json(event).encode("utf-8", "replace") + b"\n"
        with self._lock:
            self._log.write(line)
            if self._out is not None:
                self._out.write(line)
                self._out.flush()

    def phase(self, stage: str, what: str, total: int, done: int = 0, *, share: int = 1) -> Steps:
        """Begins a part whose steps are counted; `share` processes do it together."""
        self(TrainingPhase(stage=stage, what=what, total=total, done=done))
        return Steps(self, stage, total, done, share)

    def trouble(self, title: str, meaning: str = "", next_step: str = "") -> None:
        self(TroubleMet(title=title, meaning=meaning, next_step=next_step))


class Steps:
    """Counts tasks of a phase, and says how long the rest will take by the pace so far."""

    def __init__(self, tell: Teller, stage: str, total: int, done: int, share: int) -> None:
        self._tell = tell
        self._stage = stage
        self._total = total
        self._before = self._done = done
        self._share = share
        self._start = time.monotonic()

    def step(self, **metrics: float) -> None:
        self._done = min(self._total, self._done + self._share)
        pace = (time.monotonic() - self._start) / (self._done - self._before)
        left = pace * (self._total - self._done)
        self._tell(TrainingStepped(stage=self._stage, step=self._done, total=self._total, metrics=metrics, left_s=left))
