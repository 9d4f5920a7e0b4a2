"""Who advises a run or a `verify`: findings and known cheats at once, a reviewer where a reward jumps."""

from __future__ import annotations

import asyncio
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


def jumps(speedup: float | None, best: float | None = None) -> bool:
    """Whether a speedup is far above 1, or above the best so far."""
    return speedup is not None and (speedup > JUMP or speedup > JUMP_OVER_BEST * max(best or 1.0, 1.0))


def advise(source: str, base: CaseBase) -> Advice:
    """What can be said of a source without a reviewer."""
    return Advice(findings_of(source), base.similar(source))


class Adviser:
    """Keeps the case base, which grows by what is learned, and the reviewer where there is one."""

    def __init__(self, base: CaseBase | None = None, reviewer: Reviewer | None = None) -> None:
        self._base = base or CaseBase()
        self._reviewer = reviewer

    async def advise(self, source: str) -> Advice:
        return await asyncio.to_thread(advise, source, self._base)

    def wants_review(self, verdict: Verdict, best: float | None) -> bool:
        """Only what the referee accepted earns a reward that can jump."""
        return self._reviewer is not None and verdict.accepted and jumps(verdict.speedup, best)

    async def review(self, reference: str, source: str, advice: Advice) -> Advice:
        """The same with what the reviewer thinks; its failure is told in its place."""
        assert self._reviewer is not None
        cases = [self._base.case(one.name) for one in self._base.similar(source, least=0.0)]
        return replace(advice, review=await self._reviewer.review(reference, source, cases))

    def learn(self, judged: Judged) -> None:
        self._base.learn(judged)

    async def close(self) -> None:
        if self._reviewer is not None:
            await self._reviewer.close()
