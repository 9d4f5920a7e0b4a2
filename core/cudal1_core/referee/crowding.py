"""Whether other programs had the processor while a candidate was timed on it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from pathlib import Path

from cudal1_core.referee.runner import Runner

WAITED = 0.1  # share of the reference's time that its threads may be ready to run and have no core
FOREIGN = 0.1  # cores that others may have kept busy, in the middle
BUSY = (0, 1, 2, 5, 6, 7)  # user, nice, system, irq, softirq, steal: fields of /proc/stat


class Crowding:
    """From its making on. The reference's threads are asked, which no candidate can keep from running.

    They also wait for each other where there are few cores; so others must have been at work too.
    """

    def __init__(self, reference: Runner, runners: Sequence[Runner]) -> None:
        self._reference = reference
        self._runners = runners
        self._waited = reference.waited()
        self._foreign = self._foreign_seconds()
        self._begin = time.monotonic()

    def found(self, spent: float) -> bool:
        """`spent`: seconds for which the reference has run since."""
        waited = self._reference.waited() - self._waited
        foreign = self._foreign_seconds() - self._foreign
        idle = foreign <= FOREIGN * (time.monotonic() - self._begin)  # not where it is not known
        return waited > WAITED * spent and not idle

    def _foreign_seconds(self) -> float:
        """Processor time that neither the runners nor this process have had, since some point in the past."""
        return _busy_seconds() - time.process_time() - sum(runner.computed() for runner in self._runners)


def _busy_seconds() -> float:
    """Of all cores, what the host took for other machines included; not a number where the system does not tell."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
        return sum(int(fields[place]) for place in BUSY) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return math.nan
