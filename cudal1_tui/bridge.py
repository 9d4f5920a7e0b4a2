"""Between a run and the screen: what the screen needs of a run, and the pump that carries its events."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from cudal1_core.events import Decision, Event


class RunHandle(Protocol):
    """A run as the workbench drives it; `cudal1_core.rounds.Run` is one."""

    @property
    def paused(self) -> bool: ...

    def events(self) -> AsyncIterator[Event]:
        """Drives the run and yields what happens, decisions included."""
        ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def decide(self, candidate_id: str, decision: Decision, path: Path | None = None) -> None: ...

    def extend(self, rounds: int) -> None:
        """Adds rounds to a run, also to one that is done."""
        ...

    def update(self) -> None:
        """Trains the policy's model before the next round; now, where the run is done. Raises UsageError."""
        ...

    async def stop(self) -> None:
        """Ends the run and every child process, within two seconds."""
        ...


class Pump:
    """Carries events from a run into a queue. `wake` is told of each: True for text that can wait a frame."""

    def __init__(self, run: RunHandle, wake: Callable[[bool], None], failed: Callable[[Exception], None]) -> None:
        self._run = run
        self._wake = wake
        self._failed = failed
        self._waiting: deque[Event] = deque()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins, or goes on with a run that was extended after its events had ended."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._carry(), name="events")

    def take(self) -> list[Event]:
        """Everything that waits, in order; one candidate's text is joined where nothing lies between."""
        from cudal1_core.events import TokenArrived

        taken: list[Event] = []
        open_text: dict[str, int] = {}  # candidate -> where its last piece stands in `taken`
        while self._waiting:
            event = self._waiting.popleft()
            if not isinstance(event, TokenArrived):
                open_text.clear()
                taken.append(event)
            elif (place := open_text.get(event.candidate)) is None:
                open_text[event.candidate] = len(taken)
                taken.append(event)
            else:
                earlier = taken[place]
                assert isinstance(earlier, TokenArrived)
                taken[place] = replace(earlier, text=earlier.text + event.text)
        return taken

    async def stop(self) -> None:
        """Ends the run, then the pump."""
        try:
            await self._run.stop()
        finally:
            if self._task is not None:
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)

    async def _carry(self) -> None:
        try:
            async for event in self._run.events():
                self._waiting.append(event)
                self._wake(event.name == "token_arrived")
        except Exception as error:  # a fault of the run must not take the screen with it
            self._failed(error)
