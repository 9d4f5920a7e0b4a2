"""One subject and its candidates, judged by a referee that may die: each candidate gives one row, whatever happens."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from cudal1_core.archive import Archive
from cudal1_core.baselines import Which, tell_baselines
from cudal1_core.bench.row import Row, options_facts, referee_fingerprint, row_key
from cudal1_core.bench.suites import Source, Subject
from cudal1_core.bench.techniques import techniques_of
from cudal1_core.candidate import source_hash
from cudal1_core.errors import Cudal1Error, PolicyError, UnjudgeableError
from cudal1_core.events import Event
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.reference import Task
from cudal1_core.verdict import Verdict

TRIES = 2  # of a candidate on which the referee failed, the second in a fresh one
# What the referee and the bench put into temporary folders: their names differ in every run and say nothing.
_PRIVATE = re.compile(r"(?:/[^\s/:'\"()]+)*/cudal1-\d+-[\w-]+/(?:w\d+/)?")
NO_CODE = Verdict("rejected", "no_code", "there is no code for this task")


@dataclass(frozen=True, slots=True)
class Work:
    """A subject with those of its candidates that have no row yet."""

    subject: Subject
    sources: tuple[Source, ...] = ()


class Listener(Protocol):
    """Who is told what a lane does; called in the event loop."""

    def began(self, lane: int, subject: Subject, candidate: str) -> None: ...

    def happened(self, lane: int, event: Event) -> None: ...

    def idle(self, lane: int) -> None: ...


class Worker(Protocol):
    """Does one piece of work after another; each has its own referee."""

    async def do(self, work: Work, lane: int, keep: Callable[[list[Row]], None], going: Callable[[], bool]) -> None:
        """Gives rows to `keep` as they come; begins no candidate once not `going`."""
        ...

    async def close(self) -> None: ...


class JudgingWorker:
    """Judges candidates that exist."""

    def __init__(
        self,
        options: JudgeOptions,
        folder: Path,
        listener: Listener,
        *,
        baselines: Which = "eager",
        archive: Archive | None = None,
    ) -> None:
        """`archive` keeps baselines, and is left to whoever opened it; none is needed for eager alone."""
        self._options = options
        self._baselines = baselines
        self._archive = archive
        self._facts = options_facts(options)
        self._folder = folder  # for references without a file of their own
        self._listener = listener
        self._referee: Referee | None = None
        self._task: Task | None = None
        self._told_baselines = False  # of this task

    async def do(self, work: Work, lane: int, keep: Callable[[list[Row]], None], going: Callable[[], bool]) -> None:
        """A row a candidate. Raises nothing of its own."""
        opened = False
        refusal: UnjudgeableError | None = None
        for source in work.sources:
            if not going():
                return
            start = time.monotonic()
            self._listener.began(lane, work.subject, source.name)
            row = base_row(work.subject, source, self._facts)
            if not source.text.strip() and not source.examine:
                keep([replace(row, at=time.time())])
                continue
            for _ in range(TRIES):
                try:
                    if not opened and refusal is None:
                        await self._open(work.subject)
                        opened = True
                except UnjudgeableError as error:
                    refusal = error
                except Exception as error:
                    row = await self._fail(row, error)
                    continue
                if refusal is not None:
                    row = replace(row, verdict=refused(refusal), failed="")
                    break
                try:
                    verdict = self._examined() if source.examine else await self._judge(source, lane)
                    row = replace(row, verdict=verdict, failed="")
                    break
                except UnjudgeableError as error:
                    row, opened = replace(row, verdict=refused(error), failed=""), False
                    await self.close()  # it may still be busy with this candidate
                    break
                except Exception as error:  # the referee's own failure costs this row and its processes
                    row, opened = await self._fail(row, error), False
            keep([replace(row, seconds=round(time.monotonic() - start, 3), at=time.time())])

    async def close(self) -> None:
        """Ends every child."""
        referee, self._referee = self._referee, None
        if referee is not None:
            await referee.close()

    async def _open(self, subject: Subject) -> None:
        if self._referee is None:
            self._referee = Referee(self._options)
        self._task = await self._referee.open(reference_path(subject, self._folder))
        self._told_baselines = False

    def _examined(self) -> Verdict:
        """No code, with what the examination of the reference found."""
        assert self._task is not None
        assert self._referee is not None
        task = self._task
        return replace(
            NO_CODE,
            reason=f"{NO_CODE.reason}; the task is {', '.join(task.labels) or 'sound'}",
            labels=task.labels,
            checks=task.checks,
            device={"device": task.device, "name": task.device_name, "flags": task.flags},
            versions=self._referee.versions,
        )

    async def _judge(self, source: Source, lane: int) -> Verdict:
        assert self._referee is not None
        if self._baselines != "eager" and self._archive is not None and not self._told_baselines:
            told = partial(self._listener.happened, lane)
            await tell_baselines(self._referee, self._archive, self._baselines, told, quietly=True)
            self._told_baselines = True
        text = source.text.encode("utf-8", "surrogateescape")
        verdict = await self._referee.judge("candidate", text, lambda event: self._listener.happened(lane, event))
        return publishable(verdict)

    async def _fail(self, row: Row, error: Exception) -> Row:
        await self.close()
        return failed_row(row, error)


def base_row(subject: Subject, source: Source, facts: dict[str, Any]) -> Row:
    """Everything about a row but its verdict."""
    return Row(
        task=subject.task,
        key=row_key(subject, source, facts),
        verdict=NO_CODE,
        candidate=source.name,
        level=subject.level,
        title=subject.title,
        found=techniques_of(source.text),
        claimed=subject.claimed,
        reference_hash=source_hash(subject.text),
        candidate_hash=source_hash(source.text),
        options=facts,
        referee=referee_fingerprint(),
    )


def failed_row(row: Row, error: Exception) -> Row:
    """A row without a verdict, for a failure that is neither the candidate's nor the reference's."""
    told = str(error) if isinstance(error, Cudal1Error) else f"{type(error).__name__}: {error}"
    what = "the policy failed" if isinstance(error, PolicyError) else "the referee itself failed"
    return replace(row, verdict=Verdict("unjudgeable", None, what), failed=told[-2000:])


def refused(error: UnjudgeableError) -> Verdict:
    return publishable(Verdict("unjudgeable", error.category, error.title))


def publishable(verdict: Verdict) -> Verdict:
    """With `candidate.py:5` where the reason named a file in a temporary folder of ours."""
    return replace(verdict, reason=_PRIVATE.sub("", verdict.reason)) if verdict.reason else verdict


def reference_path(subject: Subject, folder: Path) -> Path:
    """Where the referee reads the reference: its own file, or one made of the suite's text."""
    if subject.path is not None:
        return subject.path
    path = folder / subject.file_name
    if not path.exists():
        path.write_bytes(subject.text.encode("utf-8", "surrogateescape"))
    return path


def left_of(subjects: Sequence[Subject], facts: dict[str, Any], done: Callable[[str], bool]) -> list[Work]:
    """What has no row yet."""
    work = []
    for subject in subjects:
        sources = tuple(source for source in subject.candidates if not done(row_key(subject, source, facts)))
        if sources:
            work.append(Work(subject, sources))
    return work
