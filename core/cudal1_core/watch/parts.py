"""The referee and the policy of the next run, started while nothing else is done."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence

from cudal1_core.errors import Cudal1Error
from cudal1_core.policies.base import Fragment, Policy, Prompt
from cudal1_core.referee.host import Referee

Parts = tuple[Referee, Policy]


class Spare:
    """Hands out a referee and a policy for each run. A policy that holds a model is `kept` from run to run."""

    def __init__(self, referee: Callable[[], Referee], policy: Callable[[], Policy], *, kept: bool) -> None:
        self._make_referee = referee
        self._make_policy = policy
        self._kept = Kept(policy()) if kept else None
        self._ready: asyncio.Task[Parts] | None = None

    def refill(self) -> None:
        """Starts the processes of the next run."""
        if self._ready is None:
            self._ready = asyncio.create_task(self._start(), name="spare")

    async def take(self) -> Parts:
        ready, self._ready = self._ready, None
        if ready is not None:
            with contextlib.suppress(Cudal1Error, OSError):  # told by the run that starts them again
                return await ready
        return self._parts()

    async def give_back(self, parts: Parts) -> None:
        """Parts that no run was made of."""
        await asyncio.gather(parts[0].close(), parts[1].close())

    async def close(self) -> None:
        if self._ready is not None:
            self._ready.cancel()
            with contextlib.suppress(asyncio.CancelledError, Cudal1Error, OSError):
                referee, policy = await self._ready
                await asyncio.gather(referee.close(), policy.close())
        if self._kept is not None:
            await self._kept.policy.close()

    def _parts(self) -> Parts:
        return self._make_referee(), self._kept or self._make_policy()

    async def _start(self) -> Parts:
        referee, policy = self._parts()
        try:
            await referee.__aenter__()
            await policy.prepare()
        except BaseException:
            await asyncio.gather(referee.close(), policy.close())
            raise
        return referee, policy


class Kept:
    """A policy that outlives its run: what is being loaded goes on loading when a run is stopped."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.name = policy.name
        self.converses = policy.converses
        self._preparing: asyncio.Task[None] | None = None

    async def prepare(self) -> None:
        if self._preparing is None or (self._preparing.done() and self._failed(self._preparing)):
            self._preparing = asyncio.create_task(self.policy.prepare())
        await asyncio.shield(self._preparing)

    async def fit(self, texts: Sequence[str]) -> int:
        await self.prepare()
        return await self.policy.fit(texts)

    def generate(self, prompt: Prompt, n: int) -> AsyncIterator[Fragment]:
        return self.policy.generate(prompt, n)

    async def close(self) -> None:
        """Left to `Spare.close`."""

    def _failed(self, task: asyncio.Task[None]) -> bool:
        return task.cancelled() or task.exception() is not None
