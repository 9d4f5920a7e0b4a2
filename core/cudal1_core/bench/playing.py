"""One subject played by a policy: a run of rounds, each of its candidates a row."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cudal1_core.archive import Archive
from cudal1_core.bench.judging import (
    NO_CODE,
    Listener,
    Work,
    base_row,
    failed_row,
    publishable,
    reference_path,
    refused,
)
from cudal1_core.bench.row import Row, options_facts, policy_key
from cudal1_core.bench.suites import Source, Subject
from cudal1_core.errors import UnjudgeableError
from cudal1_core.events import RunFinished, StageStarted, VerdictReached
from cudal1_core.paths import RunFolder
from cudal1_core.policies.base import Fragment, Policy, Prompt
from cudal1_core.referee.host import Referee
from cudal1_core.rounds import Run, RunOptions
from cudal1_core.verdict import Verdict


@dataclass(frozen=True, slots=True)
class PolicyFacts:
    """What tells one policy's results from another's."""

    name: str
    facts: dict[str, Any]  # model, rounds, group, seed, ...: all that may change what is written


class PlayingWorker:
    """Plays one run a subject; the policy is kept between subjects, since loading a model takes long."""

    def __init__(
        self,
        options: RunOptions,
        policy: Policy,
        facts: PolicyFacts,
        folder: Path,
        listener: Listener,
    ) -> None:
        self._options = options
        self._policy = policy
        self._facts = facts
        self._folder = folder
        self._listener = listener

    async def do(self, work: Work, lane: int, keep: Callable[[list[Row]], None], going: Callable[[], bool]) -> None:
        """All rows of the subject at once, so that a run that was cut off is played again."""
        start = time.monotonic()
        self._listener.began(lane, work.subject, "")
        run = Run(
            reference_path(work.subject, self._folder),
            self._options,
            Referee(self._options.judge),
            Lent(self._policy),
            Archive(),  # nothing of one task may help with another, or with the same one later
            RunFolder(work.subject.file_name, None),
        )
        seconds: dict[str, float] = {}
        try:
            async for event in run.events():
                if isinstance(event, StageStarted) and event.stage == "building":
                    self._listener.began(lane, work.subject, event.candidate)
                self._listener.happened(lane, event)
                if isinstance(event, VerdictReached):
                    seconds[event.candidate] = event.seconds
                elif isinstance(event, RunFinished):
                    break
        finally:
            await run.close()
        keep(self._rows(work.subject, run, seconds, time.monotonic() - start))

    async def close(self) -> None:
        await self._policy.close()

    def _rows(self, subject: Subject, run: Run, seconds: dict[str, float], total: float) -> list[Row]:
        facts = options_facts(self._options.judge)
        key, now = policy_key(subject, self._facts.facts, facts), time.time()

        def row(source: Source, took: float, verdict: Verdict, named: tuple[str, ...] = ()) -> Row:
            base = base_row(subject, source, facts)
            policy = self._facts.name
            return replace(base, key=key, policy=policy, at=now, seconds=round(took, 3), verdict=verdict, named=named)

        rows = [
            row(
                Source(judged.candidate.id, judged.candidate.source),
                seconds.get(judged.candidate.id, 0.0),
                publishable(judged.verdict),
                judged.candidate.techniques,
            )
            for judged in run.judged.values()
        ]
        if rows and run.error is None:
            return rows
        none = row(Source("", ""), total, replace(NO_CODE, reason="the policy wrote no candidate"))
        if isinstance(run.error, UnjudgeableError):
            return [*rows, replace(none, verdict=refused(run.error))]
        return [*rows, failed_row(none, run.error) if run.error is not None else none]


class Lent:
    """A policy that outlives whoever it is lent to."""

    def __init__(self, policy: Policy) -> None:
        self.name = policy.name
        self.converses = policy.converses
        self._policy = policy

    async def prepare(self) -> None:
        await self._policy.prepare()

    async def fit(self, texts: Sequence[str]) -> int:
        return await self._policy.fit(texts)

    def generate(self, prompt: Prompt, n: int) -> AsyncIterator[Fragment]:
        return self._policy.generate(prompt, n)

    async def close(self) -> None:
        """Whoever lends it closes it."""


def left_to_play(
    subjects: Sequence[Subject], facts: PolicyFacts, judge: dict[str, Any], done: Callable[[str], bool]
) -> list[Work]:
    return [Work(subject) for subject in subjects if not done(policy_key(subject, facts.facts, judge))]
