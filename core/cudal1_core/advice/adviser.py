"""Who advises a run or a `verify`: findings and known cheats at once, a reviewer where a reward jumps."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from cudal1_core.advice.advice import Advice
from cudal1_core.advice.case_base import CaseBase
from cudal1_core.advice.findings import findings_of

if TYPE_CHECKING:
    from cudal1_core.advice.reviewer import Reviewer
    from cudal1_core.policies.base import Judged
    from cudal1_core.verdict import Verdict

# CUDA-L1 measures such rewards again (section 2.4.4) and shows them to its reviewer (section 3).
JUMP = 3.0
JUMP_OVER_BEST = 2.0


def jumps(speedup: float | None, best: float | None) -> bool:
    """Whether a speedup is far above 1, or far above the best so far."""
    return speedup is not None and (speedup > JUMP or speedup > JUMP_OVER_BEST * max(best or 1.0, 1.0))


class Adviser:
    """Its case base holds what `known` gives when it is first needed, and what is learned after that."""

    def __init__(self, known: Callable[[], Iterable[Judged]] = tuple, reviewer: Reviewer | None = None) -> None:
        self._known = known
        self._reviewer = reviewer
        self._base: CaseBase | None = None

    async def advise(self, source: str) -> Advice:
        """What can be said of a source without a reviewer. Raises nothing."""
        base = await self._cases()
        try:
            return await asyncio.to_thread(lambda: Advice(findings_of(source), base.similar(source)))
        except RecursionError:  # nested deeper than any reader follows
            return Advice()

    def wants_review(self, verdict: Verdict, best: float | None) -> bool:
        """Only what the referee accepted earns a reward that can jump over the best so far."""
        return self._reviewer is not None and verdict.accepted and jumps(verdict.speedup, best)

    async def review(self, reference: str, source: str, advice: Advice) -> Advice:
        """The same with what the reviewer thinks; its failure is told in its place."""
        assert self._reviewer is not None
        base = await self._cases()
        cases = [base.case(one.name) for one in base.similar(source, least=0.0)]
        return replace(advice, review=await self._reviewer.review(reference, source, cases))

    async def learn(self, judged: Judged) -> None:
        """What was rejected as a cheat is a known case from now on."""
        (await self._cases()).learn(judged)

    async def close(self) -> None:
        if self._reviewer is not None:
            await self._reviewer.close()

    async def _cases(self) -> CaseBase:
        if self._base is None:
            try:
                known = tuple(self._known())
            except sqlite3.Error:  # whoever writes to that archive tells of it
                known = ()
            self._base = await asyncio.to_thread(_base_of, known)
        return self._base


def _base_of(known: Iterable[Judged]) -> CaseBase:
    base = CaseBase()
    for judged in known:
        base.learn(judged)
    return base
