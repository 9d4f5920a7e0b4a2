"""Lanes: several referees side by side, so that the next candidates are built while one has the GPU.

A referee takes its turn on a GPU by itself (a lock over all processes), so any number of lanes may share one.
On the CPU building and timing would disturb each other, and there is one lane.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Sequence

from cudal1_core.bench.judging import Listener, Work, Worker
from cudal1_core.bench.row import Row
from cudal1_core.errors import RefereeError

CORES_A_LANE = 3  # a build is a compiler and its driver, beside the reference's own process
MOST_LANES = 6  # of one GPU: each holds a reference's inputs and truth in GPU memory
MOST_FAILURES = 5  # of the referee itself, in a row, after which something is wrong with the machine

MakeWorker = Callable[[str], Worker]  # of a device's name


def lanes_for(devices: Sequence[str], ahead: int | None) -> list[str]:
    """The device of each lane. `ahead`: lanes a GPU; None: as many as there are cores for."""
    lanes = []
    cores = len(os.sched_getaffinity(0)) // max(1, len(devices))
    for device in devices:
        count = 1 if device == "cpu" else ahead or min(MOST_LANES, max(1, (cores - 2) // CORES_A_LANE))
        lanes += [device] * count
    return lanes


async def play(
    work: Sequence[Work],
    lanes: Sequence[str],
    make_worker: MakeWorker,
    listener: Listener,
    keep: Callable[[list[Row]], None],
    *,
    going: Callable[[], bool] = lambda: True,
) -> None:
    """Hands the work to the lanes, in order, and every row to `keep` as it comes; begins no more when not `going`.

    Raises RefereeError where the referee failed several times in a row, and what `keep` raises. In any case, also
    when cancelled, every child has ended on return.
    """
    waiting = deque(work)
    failures = 0

    def note(rows: list[Row]) -> None:
        nonlocal failures
        keep(rows)
        for row in rows:
            failures = failures + 1 if row.failed else 0
            if failures >= MOST_FAILURES:
                raise RefereeError(
                    f"{row.verdict.reason} {MOST_FAILURES} times in a row",
                    row.failed,
                    "Run `cudal1-tui doctor` to see what is wrong; what was judged before is kept.",
                )

    async def lane(number: int, device: str) -> None:
        worker = make_worker(device)
        try:
            while waiting and going():
                await worker.do(waiting.popleft(), number, note, going)
            listener.idle(number)
        finally:
            await worker.close()

    tasks = [asyncio.create_task(lane(number, device), name=f"lane {number}") for number, device in enumerate(lanes)]
    try:
        await _first_failure(tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _first_failure(tasks: Sequence[asyncio.Task[None]]) -> None:
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()
