"""Pauses cost no budget."""

from __future__ import annotations

import math

from cudal1_core.stopwatch import Stopwatch


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_held_time_does_not_count() -> None:
    clock = Clock()
    watch = Stopwatch(clock)
    assert watch.worked == 0
    watch.start()
    clock.now += 5
    watch.hold()
    clock.now += 1000
    assert watch.left(20) == 15
    watch.go_on()
    watch.go_on()
    clock.now += 7
    assert watch.worked == 12
    assert watch.left(10) == -2
    assert watch.left(None) == math.inf
