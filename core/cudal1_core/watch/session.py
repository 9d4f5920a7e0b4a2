"""The watch: every save of a reference becomes a run, told as one stream with what was seen.

It is driven as a run is (`cudal1_core.rounds.Run`); what is decided goes to the run that is shown.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from cudal1_core.errors import Cudal1Error, UsageError
from cudal1_core.events import Decision, Event, ReferenceSeen, RunFinished, TroubleMet, WatchStarted
from cudal1_core.rounds import Run
from cudal1_core.watch.following import Following, Seen
from cudal1_core.watch.observing import Observing
from cudal1_core.watch.parts import Parts, Spare
from cudal1_core.watch.selection import Selection

GRACE_S = 0.2  # between an old file that is moved away and the new one that takes its name


class Watching:
    """One run at a time; a newer save stops the older run at once. `events` is read by one consumer.

    `make_run` puts a run together from a reference, a referee and a policy.
    """

    def __init__(
        self,
        selection: Selection,
        make_run: Callable[[Path, Parts], Run],
        spare: Spare,
        *,
        class_name: str | None = None,
        polling: float | None = None,
    ) -> None:
        self.error: Exception | None = None  # what ended the watch
        self._selection = selection
        self._make_run = make_run
        self._spare = spare
        self._polling = polling
        self._following = Following(selection, class_name)
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._waiting: list[Path] = []  # references to run, next first
        self._work = asyncio.Event()
        self._run: Run | None = None
        self._path: Path | None = None  # that is read or run now
        self._ended = True  # the rounds of the run
        self._stopping: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def events(self) -> AsyncIterator[Event]:
        """Starts the watch; it ends by `stop`. Raises what keeps it from watching."""
        self._tasks = [asyncio.create_task(self._watch(), name="watch"), asyncio.create_task(self._play(), name="play")]
        try:
            while (event := await self._queue.get()) is not None:
                yield event
        finally:
            await self.stop()
        if self.error is not None:
            raise self.error

    @property
    def paused(self) -> bool:
        return self._run is not None and self._run.paused

    @property
    def waiting(self) -> int:
        """References that wait for their turn."""
        return len(self._waiting)

    def pause(self) -> None:
        if self._run is not None:
            self._run.pause()

    def resume(self) -> None:
        if self._run is not None:
            self._run.resume()

    def decide(self, candidate_id: str, decision: Decision, path: Path | None = None) -> None:
        if self._run is not None:
            self._run.decide(candidate_id, decision, path)

    def extend(self, rounds: int) -> None:
        if self._run is not None:
            self._ended = False
            self._run.extend(rounds)

    def update(self) -> None:
        raise UsageError(
            "A watch does not train", "Each save begins a run of its own.", "Train in a run of one reference."
        )

    async def stop(self) -> None:
        """Ends the watch, its run and every child."""
        for task in self._tasks:
            task.cancel()
        if self._run is not None:
            await self._run.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        await self._spare.close()
        self._queue.put_nowait(None)

    async def _watch(self) -> None:
        try:
            with Observing(self._selection, self._polling) as observing:
                found = await asyncio.to_thread(self._following.start)
                paths = tuple(str(path) for path in (*self._selection.files, *self._selection.folders))
                self._queue.put_nowait(
                    WatchStarted(paths=paths, references=self._following.references, how=observing.how)
                )
                self._take(found)
                if not self._waiting:
                    self._spare.refill()
                observing.also(self._following.helpers)
                async for batch in observing.batches():
                    at = time.time()
                    if self._following.amid_a_save(batch):
                        await asyncio.sleep(GRACE_S)
                    self._take(await asyncio.to_thread(self._following.look, batch), at)
                    observing.also(self._following.helpers)
        except Exception as error:
            self.error = error
            self._queue.put_nowait(None)

    def _take(self, found: list[Seen], at: float | None = None) -> None:
        changed = [seen.path for seen in found if seen.state == "changed"]
        if changed:  # whatever is at work is older than this save
            behind = [path for path in (self._current(), *self._waiting) if path is not None and path not in changed]
            self._waiting = [*changed, *dict.fromkeys(behind)]
            self._interrupt()
        for seen in found:
            self._queue.put_nowait(
                ReferenceSeen(path=str(seen.path), state=seen.state, message=seen.message, at=at or time.time())
            )
            if seen.state in ("unreadable", "gone"):
                self._drop(seen.path)
        if self._waiting:
            self._work.set()

    def _drop(self, path: Path) -> None:
        """What cannot be read is not worked on, and is again as soon as it can be."""
        if path == self._current():
            self._interrupt()
        elif path not in self._waiting:
            return
        self._waiting = [waiting for waiting in self._waiting if waiting != path]
        self._following.forget(path)

    def _current(self) -> Path | None:
        """The reference that is being worked on; None once its rounds have ended."""
        return None if self._ended else self._path

    def _interrupt(self) -> None:
        if self._run is not None and self._stopping is None:
            self._stopping = asyncio.create_task(self._run.close(), name="interrupt")

    async def _play(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            while self._waiting:
                parts = await self._spare.take()
                if not self._waiting:  # gone or unreadable while the parts were got ready
                    await self._spare.give_back(parts)
                    break
                self._path, self._ended = self._waiting.pop(0), False
                try:
                    await self._play_one(self._path, parts)
                except Exception as error:
                    self._tell(error)
                finally:
                    self._run, self._path, self._ended = None, None, True
                if self._stopping is not None:
                    await asyncio.wait([self._stopping])
                    self._stopping = None
            self._spare.refill()

    async def _play_one(self, path: Path, parts: Parts) -> None:
        run = self._run = self._make_run(path, parts)
        async for event in run.events():
            self._queue.put_nowait(event)
            if isinstance(event, RunFinished):
                self._ended = True
                if self._waiting:  # what waits has its turn
                    self._interrupt()
                elif self._stopping is None:
                    self._spare.refill()

    def _tell(self, error: Exception) -> None:
        if isinstance(error, Cudal1Error):
            told = TroubleMet(title=error.title, meaning=error.meaning, next_step=error.next_step)
        else:
            told = TroubleMet(title="The run ended unexpectedly", meaning=f"{type(error).__name__}: {error}")
        self._queue.put_nowait(told)
