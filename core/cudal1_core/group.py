"""The candidates of one round on their way from the policy to the referee."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass

from cudal1_core.candidate import Candidate
from cudal1_core.policies.base import Prompt


@dataclass(frozen=True, slots=True)
class Written:
    candidate: Candidate
    asked: Prompt


class Group:
    """What has been written and waits for the referee, and the tasks that write."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[Written | None] = asyncio.Queue()
        self._writers: set[asyncio.Task[None]] = set()

    def add(self, writing: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(writing, name="writer")
        self._writers.add(task)
        task.add_done_callback(lambda _: self._waiting.put_nowait(None))

    def put(self, written: Written) -> None:
        self._waiting.put_nowait(written)

    async def next(self) -> Written | None:
        """None when all that was asked for has been written and taken."""
        while not self._waiting.empty() or not all(writer.done() for writer in self._writers):
            if (written := await self._waiting.get()) is not None:
                return written
        return None

    async def end(self) -> BaseException | None:
        """Ends what still writes; the first failure of a writer that came to its end by itself."""
        failures = [task.exception() for task in self._writers if task.done() and not task.cancelled()]
        for task in self._writers:
            task.cancel()
        if self._writers:
            await asyncio.wait(self._writers)
        return next((failure for failure in failures if failure is not None), None)
