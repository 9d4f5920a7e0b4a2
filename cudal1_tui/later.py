"""A run that is put together only when the screen asks for its events: the first paint does not wait for it."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Generic, TypeVar

from cudal1_tui.bridge import RunHandle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path
    from types import TracebackType

    from cudal1_core.events import Decision, Event

AnyRun = TypeVar("AnyRun", bound=RunHandle)


class RunLater(Generic[AnyRun]):
    """Stands for the run that `prepare` makes. Leaving the `with` block releases what the run was given."""

    def __init__(self, prepare: Callable[[], AbstractContextManager[AnyRun]]) -> None:
        self.run: AnyRun | None = None
        self._prepare = prepare
        self._held = ExitStack()

    def __enter__(self) -> RunLater[AnyRun]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._held.close()

    def made(self) -> AnyRun:
        """The run, put together now if it was not before."""
        if self.run is None:
            self.run = self._held.enter_context(self._prepare())
        return self.run

    @property
    def paused(self) -> bool:
        return self.run is not None and self.run.paused

    async def events(self) -> AsyncIterator[Event]:
        """Raises what `prepare` raises."""
        async for event in self.made().events():
            yield event

    def pause(self) -> None:
        self.made().pause()

    def resume(self) -> None:
        self.made().resume()

    def decide(self, candidate_id: str, decision: Decision, path: Path | None = None) -> None:
        self.made().decide(candidate_id, decision, path)

    def extend(self, rounds: int) -> None:
        self.made().extend(rounds)

    def update(self) -> None:
        self.made().update()

    async def stop(self) -> None:
        if self.run is not None:
            await self.run.stop()
