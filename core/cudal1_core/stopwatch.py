"""Working time: what has passed since the start, without the pauses."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class Stopwatch:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._worked = 0.0
        self._since: float | None = None  # None while held or not yet started

    def start(self) -> None:
        self._since = self._clock()

    def hold(self) -> None:
        self._worked = self.worked
        self._since = None

    def go_on(self) -> None:
        if self._since is None:
            self._since = self._clock()

    @property
    def worked(self) -> float:
        """Seconds."""
        return self._worked + (self._clock() - self._since if self._since is not None else 0.0)

    def left(self, budget_s: float | None) -> float:
        """Seconds of the budget that are left; infinite without one."""
        return math.inf if budget_s is None else budget_s - self.worked
