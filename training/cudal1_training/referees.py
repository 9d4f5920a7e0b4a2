"""Referees for the trainer: a few side by side, in the event loop of a thread of their own.

A referee that fails is replaced and the candidate judged once more; what still has no verdict is unscorable, which
a trainer leaves out. When it fails several times in a row, training pauses.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from cudal1_core.bench.judging import publishable, refused
from cudal1_core.bench.lanes import lanes_for
from cudal1_core.candidate import Candidate
from cudal1_core.errors import RefereeError, UnjudgeableError
from cudal1_core.events import Event, VerdictReached
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.reference import Task
from cudal1_core.verdict import Verdict

from cudal1_training.folder import PausedError

MOST_FAILURES = 3  # in a row
NO_CODE = Verdict("rejected", "no_code", "there is no code in the answer")

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Asked:
    """A candidate and the reference it is for."""

    task: Task
    candidate: Candidate


class Referees:
    """Use as a context. `tell` is called from another thread."""

    def __init__(self, options: JudgeOptions, lanes: int, tell: Callable[[Event], None]) -> None:
        device = options.device
        count = lanes or len(lanes_for([device], None)) if device.startswith("cuda") else lanes or 1
        self.seconds = 0.0  # spent waiting for verdicts
        self.judged = 0
        self._options = options
        self._tell = tell
        self._lanes = [_Lane(options) for _ in range(count)]
        self._known: dict[tuple[str, str], Verdict] = {}  # of this process: source hashes of reference and candidate
        self._failures = 0
        self._reached: queue.SimpleQueue[tuple[int, Verdict]] = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="referees", daemon=True)

    def __enter__(self) -> Referees:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def open(self, path: Path) -> Task:
        """The task of a reference. Raises UnjudgeableError, and PausedError where the referee itself fails."""
        return self._run(self._open(path))

    def judge(self, asked: Sequence[Asked], reached: Callable[[int, Verdict], None]) -> list[Verdict]:
        """One verdict each, in order; `reached` is told of each, by its place, as it comes. Raises PausedError."""
        start = time.monotonic()
        try:
            return self._run(self._judge_all(asked), reached)
        finally:
            self.seconds += time.monotonic() - start
            self.judged += len(asked)

    def _run(
        self, work: Coroutine[Any, Any, Result], reached: Callable[[int, Verdict], None] = lambda place, verdict: None
    ) -> Result:
        """Waits in short turns, so that a signal is taken between them and verdicts are kept as they come."""
        future: Future[Result] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            ended = False
            while not ended:
                ended = bool(wait([future], timeout=0.2).done)
                while not self._reached.empty():
                    reached(*self._reached.get())
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def _open(self, path: Path) -> Task:
        try:
            return await self._lanes[0].open(path)
        except RefereeError as error:
            await self._lanes[0].close()
            try:
                return await self._lanes[0].open(path)
            except RefereeError:
                raise _paused(error) from error

    async def _judge_all(self, asked: Sequence[Asked]) -> list[Verdict]:
        found: dict[int, Verdict] = {}
        same: dict[tuple[str, str], list[int]] = {}
        for place, one in enumerate(asked):
            same.setdefault(_key(one), []).append(place)
        waiting = deque(sorted(same.values(), key=lambda places: asked[places[0]].task.path))

        async def work(lane: _Lane) -> None:
            while waiting:
                places = waiting.popleft()
                one = asked[places[0]]
                start = time.monotonic()
                verdict = self._known.get(_key(one)) or await self._judge(lane, one)
                for place in places:  # the same code twice is judged once
                    found[place] = verdict
                    self._reached.put((place, verdict))
                    name = asked[place].candidate.id
                    self._tell(VerdictReached(candidate=name, verdict=verdict, seconds=time.monotonic() - start))

        await asyncio.gather(*(work(lane) for lane in self._lanes))
        return [found[place] for place in range(len(asked))]

    async def _judge(self, lane: _Lane, one: Asked) -> Verdict:
        if not one.candidate.source.strip():
            return NO_CODE  # no reference needs to be opened to see that
        for last in (False, True):
            try:
                await lane.open(Path(one.task.path))
                verdict = publishable(await lane.judge(one.candidate, self._tell))
                self._failures = 0
                if verdict.verdict != "unjudgeable":
                    self._known[_key(one)] = verdict
                return verdict
            except UnjudgeableError as error:  # the reference broke off, perhaps by what a candidate did
                await lane.close()
                self._failures = 0
                return refused(error)
            except RefereeError as error:
                await lane.close()
                self._failures += last
                if self._failures >= MOST_FAILURES:
                    raise _paused(error) from error
                reason = error.title
        return Verdict("unjudgeable", "unsupported", reason)

    async def _close(self) -> None:
        await asyncio.gather(*(lane.close() for lane in self._lanes))


class _Lane:
    """One referee, with one reference open."""

    def __init__(self, options: JudgeOptions) -> None:
        self._options = options
        self._referee: Referee | None = None
        self._path: Path | None = None
        self._task: Task | None = None

    async def open(self, path: Path) -> Task:
        if self._referee is None:
            self._referee = Referee(self._options)
        if self._path != path or self._task is None:
            self._path = self._task = None
            self._task = await self._referee.open(path)
            self._path = path
        return self._task

    async def judge(self, candidate: Candidate, tell: Callable[[Event], None]) -> Verdict:
        assert self._referee is not None
        return await self._referee.judge(candidate.id, candidate.source, tell)

    async def close(self) -> None:
        referee, self._referee, self._path, self._task = self._referee, None, None, None
        if referee is not None:
            await referee.close()


def _key(one: Asked) -> tuple[str, str]:
    return one.task.source_hash, one.candidate.source_hash


def _paused(error: RefereeError) -> PausedError:
    return PausedError(
        f"The referee fails: {error.title}",
        error.meaning,
        "Training is paused and kept. Run `cudal1-tui doctor`; when it judges again, the same command goes on.",
    )
