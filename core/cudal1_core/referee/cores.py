"""Which processor cores are set aside for what is timed on a GPU.

Both sides of a pair launch from the same core, one after the other, and the trusted worker keeps a second one;
everything else, compilers above all, stays off them. On the CPU a module may use every core, so none is set aside.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FEWEST = 4  # cores from which some can be set aside


@dataclass(frozen=True, slots=True)
class Cores:
    """Core numbers; `launching` is None where nothing is pinned."""

    launching: int | None = None  # the runner whose turn it is
    trusted: int | None = None
    rest: tuple[int, ...] = ()  # for everything else; empty: no limit

    @property
    def none(self) -> bool:
        return self.launching is None


def set_aside(gpu: int, allowed: set[int] | None = None) -> Cores:
    """Two cores for the GPU with this index, the last ones first; none of them another thread of the other."""
    free = sorted(os.sched_getaffinity(0) if allowed is None else allowed)
    if len(free) < FEWEST:
        return Cores()
    pairs: list[tuple[int, int]] = []
    left = list(free)
    while len(left) >= 2:
        launching = left.pop()
        twins = siblings(launching)
        left = [core for core in left if core not in twins]
        if not left:
            break
        trusted = left.pop()
        pairs.append((launching, trusted))
    launching, trusted = pairs[gpu % len(pairs)]
    taken = siblings(launching) | {launching, trusted}
    rest = tuple(core for core in free if core not in taken)
    return Cores(launching, trusted, rest) if rest else Cores()


def siblings(core: int) -> set[int]:
    """Hardware threads of the same physical core, without itself."""
    path = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
    found: set[int] = set()
    with contextlib.suppress(OSError, ValueError):
        for part in path.read_text().strip().split(","):
            first, _, last = part.partition("-")
            found |= set(range(int(first), int(last or first) + 1))
    return found - {core}


@contextlib.contextmanager
def on_core(core: int | None) -> Iterator[None]:
    """Keeps the calling thread on one core meanwhile."""
    before = os.sched_getaffinity(0)
    if core is None or core not in before:
        yield
        return
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
