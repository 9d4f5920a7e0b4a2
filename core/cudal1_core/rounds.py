"""A run: rounds of exemplars, prompt, candidates and verdicts, told as one stream of events.

A run imports neither a policy nor the referee: both are given, and any object with their methods will do.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from cudal1_core import exemplars, prompt, standing
from cudal1_core.accepted import Accepted
from cudal1_core.advice.advice import Advice
from cudal1_core.advice.adviser import Adviser
from cudal1_core.archive import Archive
from cudal1_core.baselines import TimesBaselines, Which, tell_baselines
from cudal1_core.candidate import Candidate
from cudal1_core.errors import Cudal1Error, PolicyError, RefereeError, UnjudgeableError, UsageError
from cudal1_core.events import (
    AdviceGiven,
    CandidateWritten,
    Decision,
    DecisionMade,
    Event,
    PolicyLoading,
    RoundFinished,
    RoundStarted,
    RunFinished,
    RunStarted,
    StageStarted,
    TaskDescribed,
    TokenArrived,
    TroubleMet,
    VerdictReached,
)
from cudal1_core.exemplars import ExemplarOptions
from cudal1_core.extract import extract_code
from cudal1_core.group import Group, Written
from cudal1_core.journal import Journal
from cudal1_core.paths import RunFolder
from cudal1_core.policies.base import DropsStreams, Fragment, Judged, Policy, Prompt, TakesAdapters, TellsLoading, Turn
from cudal1_core.prompt import PromptOptions
from cudal1_core.recall import Recalled
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.reference import Task
from cudal1_core.stopwatch import Stopwatch
from cudal1_core.updating import Updater
from cudal1_core.verdict import Verdict

if TYPE_CHECKING:
    from cudal1_core.advice.reviewer import Reviewer  # imports httpx, which most runs need not

MOST_FAILURES = 3  # of the referee, in a row, after which a run ends
REVIEW_S = 60.0  # longest wait for what a reviewer has not said when the rounds are over
STOP_S = 2.0  # longest time the ending of all children may take

Reason = Literal["done", "budget", "stopped", "failed"]


class Judge(Protocol):
    """The part of the referee a run needs."""

    async def open(self, reference: Path) -> Task: ...

    def baselines(self) -> list[Event]: ...

    async def judge(self, candidate_id: str, source: str, emit: Callable[[Event], None]) -> Verdict: ...

    async def close(self) -> None: ...


@runtime_checkable
class BuildsAhead(Protocol):
    """A referee that has candidates built while it judges others."""

    def builds_ahead(self, source: str) -> bool: ...

    async def build_ahead(self, candidate_id: str, source: str, emit: Callable[[Event], None]) -> None: ...


@dataclass(frozen=True, slots=True)
class RunOptions:
    rounds: int = 3
    group: int = 4  # candidates a round
    budget_s: float | None = None  # pauses do not count
    seed: int = 0  # steers policy and exemplar choice, never the referee
    judge: JudgeOptions = field(default_factory=JudgeOptions)
    exemplars: ExemplarOptions = field(default_factory=ExemplarOptions)
    prompt: PromptOptions = field(default_factory=PromptOptions)
    repair: int = 0  # times a rejected candidate goes back to a policy that converses
    baselines: Which = "known"  # "all" times them before the first round; kept open, a run does so after the last
    update: bool = False  # a step of training before each further round
    keep_open: bool = False  # after the last round the stream waits for decisions and for `extend`
    out: Path | None = None  # where accepting writes, in place of <stem>_optimized.py


class Run:
    """One run over one reference. `events` is read by one consumer; everything else may be called beside it.

    `referee` and `policy` are closed by the run; the archive is left to whoever opened it.
    """

    def __init__(
        self,
        reference: Path,
        options: RunOptions,
        referee: Judge,
        policy: Policy,
        archive: Archive,
        folder: RunFolder,
        *,
        trouble: str = "",
        accepted: Sequence[Accepted] = (),
        reviewer: Reviewer | None = None,
        recalled: Recalled | None = None,
        updater: Callable[[], Updater] | None = None,
    ) -> None:
        """`accepted` are files of this reference that are judged again before the first round; `reviewer`, which the
        run closes too, is asked where a speedup jumps; `recalled` is what this run found before, where it goes on;
        `updater` makes what trains the policy's model, or raises UsageError where that cannot be done. Raises
        UsageError where another process is at work on the run."""
        self.reference = reference
        self.options = options
        self.folder = folder
        self.task: Task | None = None
        self.error: Exception | None = None  # what ended the run with "failed"
        self.judged: dict[str, Judged] = {}  # by candidate id, in order of verdicts
        self.decisions: dict[str, Decision] = {}
        self._referee = referee
        self._policy = policy
        self._archive = archive
        self._accepted = accepted
        self._adviser = Adviser(archive.cheats, reviewer)
        self._make_updater = updater
        self._updater: Updater | None = None
        self._update_asked = False
        self._reviews: set[asyncio.Task[None]] = set()
        self._journal = Journal(folder, archive, trouble)
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._gate = asyncio.Event()
        self._gate.set()
        self._asked = asyncio.Event()  # something, of a run whose rounds are over
        self._extended = False
        self._watch = Stopwatch()
        self._planned = options.rounds
        self._round = 0
        self._written = 0  # candidates so far
        self._failures = 0  # of the referee itself, in a row
        self._verdicts: dict[str, Verdict] = {}  # by source hash
        self._writing: dict[str, tuple[Prompt, int]] = {}  # open candidates, and their places in the policy's group
        self._at_work: tuple[str, asyncio.Task[Verdict]] | None = None  # the candidate being judged
        self._building: dict[str, asyncio.Task[None]] = {}  # ahead of their judgements
        self._stopped: dict[str, Written] = {}  # before they had a verdict; judged if the person takes that back
        self._group: Group | None = None  # of the round that is played
        self._dropping: set[asyncio.Task[None]] = set()
        self.ended: Reason | None = None  # why the rounds ended; None while they are played
        self._driver: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._recalled = recalled
        if recalled is not None:
            self._journal.claim()
            self._round, self._written = recalled.round, recalled.written
            self.judged, self.decisions = dict(recalled.judged), dict(recalled.decisions)
            self._verdicts = {one.candidate.source_hash: one.verdict for one in recalled.judged.values()}
        if isinstance(policy, TellsLoading):
            policy.listen(lambda what: self._emit(PolicyLoading(what=what)))

    async def events(self) -> AsyncIterator[Event]:
        """Starts the run and tells it. Each event is stored before it is yielded.

        Leaving early stops the run. With `keep_open` a RunFinished may be followed by decisions and, after
        `extend`, by more rounds.
        """
        for known in self._recalled.events if self._recalled else ():  # stored already
            self._queue.put_nowait(known)
        self._driver = asyncio.create_task(self._drive(), name="run")
        try:
            while (event := await self._queue.get()) is not None:
                yield event
        finally:
            await self.close()

    def is_past(self, event: Event) -> bool:
        """Whether the event was told before the run went on."""
        return self._recalled is not None and any(event is known for known in self._recalled.events)

    @property
    def paused(self) -> bool:
        return not self._gate.is_set()

    def pause(self) -> None:
        """Holds writing and judging after the verdict in work."""
        self._gate.clear()
        self._watch.hold()

    def resume(self) -> None:
        self._watch.go_on()
        self._gate.set()

    def extend(self, rounds: int) -> None:
        """More rounds, also after the last one was done. A spent budget is lifted. Raises UsageError."""
        self._must_go_on()
        self._planned = max(self._planned, self._round) + rounds
        self._extended = True
        self._asked.set()

    def update(self) -> None:
        """A step of training before the next round; at once where the rounds are over. Raises UsageError."""
        self._must_go_on()
        self._trainer()
        self._update_asked = True
        self._asked.set()

    def _must_go_on(self) -> None:
        if self.ended in ("stopped", "failed"):
            raise UsageError("This run has ended", "Its referee and its policy are gone.", "Start a new run.")

    async def adapt(self, adapter: Path) -> None:
        """The next round samples from this LoRA adapter (a folder). Raises UsageError and PolicyError."""
        if not isinstance(self._policy, TakesAdapters):
            raise UsageError(f"The {self._policy.name} policy takes no adapter", "transformers and vllm do.")
        await self._policy.adapt(adapter)

    def decide(self, candidate_id: str, decision: Decision, path: Path | None = None) -> None:
        """Stores a decision and puts it on the stream; `path` is the file written for "kept".

        Dismissing a candidate that has no verdict yet stops what is done on it; taking that back queues it again.
        """
        before = self.decisions.get(candidate_id)
        self.decisions[candidate_id] = decision
        self._emit(DecisionMade(candidate=candidate_id, decision=decision, path=str(path) if path else None))
        if decision == "dismissed":
            self._stop_candidate(candidate_id)
        elif before == "dismissed" and candidate_id in self._stopped:
            self._emit(StageStarted(candidate=candidate_id, stage="queued"))
            if self._group is not None:
                self._group.put(self._stopped.pop(candidate_id))

    def _stop_candidate(self, candidate_id: str) -> None:
        if candidate_id in self.judged:
            return
        if self._at_work is not None and self._at_work[0] == candidate_id:
            self._at_work[1].cancel()
        elif candidate_id in self._building:
            self._building[candidate_id].cancel()
        elif candidate_id in self._writing and isinstance(self._policy, DropsStreams):
            dropping = asyncio.create_task(self._drop(self._policy, *self._writing[candidate_id]), name="drop")
            self._dropping.add(dropping)
            dropping.add_done_callback(self._dropping.discard)
        self._emit(StageStarted(candidate=candidate_id, stage="stopped"))

    async def _drop(self, policy: DropsStreams, prompt: Prompt, index: int) -> None:
        with suppress(PolicyError):  # told when its group is asked for more
            await policy.drop(prompt, index)

    async def stop(self) -> None:
        """Ends work and every child within two seconds; all that was shown is stored. May be called twice."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(), name="stop")
        await asyncio.shield(self._stopping)

    async def close(self) -> None:
        """Stops, and ends the stream and the journal too."""
        await self.stop()
        self._queue.put_nowait(None)
        self._journal.close()

    @property
    def best(self) -> Judged | None:
        """The fastest accepted drop-in that the person did not dismiss."""
        candidates = [
            judged
            for judged in self.judged.values()
            if exemplars.eligible(judged) and self.decisions.get(judged.candidate.id) != "dismissed"
        ]
        return max(candidates, key=lambda judged: judged.verdict.speedup or 0.0, default=None)

    async def _drive(self) -> None:
        try:
            self._watch.start()
            self._emit(self._started())
            self._preparing = asyncio.create_task(self._prepare(), name="prepare")
            self.task = await self._referee.open(self.reference)
            self._same_reference(self.task)
            self._emit(TaskDescribed(task=self.task))
            for baseline in self._referee.baselines():
                self._emit(baseline)
            await self._tell_baselines(self.options.baselines)
            for accepted in self._accepted:
                for event in await standing.judge_again(self._referee, accepted):
                    self._emit(event)
            for candidate in self._recalled.unjudged if self._recalled else ():
                await self._judge_unless_stopped(candidate)
            while True:
                reason = await self._play_rounds(self.task)
                if self._reviews:
                    await asyncio.wait(self._reviews, timeout=REVIEW_S)
                self._finish(reason)
                if not self.options.keep_open:
                    break
                await self._wait_for_more()
                self.ended = None
        except Exception as error:
            self._fail(error)
        if not self.options.keep_open:
            self._queue.put_nowait(None)

    async def _tell_baselines(self, which: Which, *, quietly: bool = False) -> None:
        if which != "eager" and isinstance(self._referee, TimesBaselines):
            await tell_baselines(self._referee, self._archive, which, self._emit, quietly=quietly)

    async def _wait_for_more(self) -> None:
        """Waits for `extend`. Meanwhile the model is updated where that is asked for, and baselines that nobody has
        timed yet are timed, which ends when anything else is to be done."""
        idle = "all" if self.options.baselines == "known" else self.options.baselines
        while not self._extended:
            timing = asyncio.create_task(self._tell_baselines(idle, quietly=True), name="baselines")
            try:
                await self._asked.wait()
            finally:
                timing.cancel()
                await asyncio.wait([timing])
                if not timing.cancelled():
                    timing.exception()  # a figure that is missing beside others is no reason to end a run
            self._asked.clear()
            if self._update_asked:
                await self._update()
        self._extended = False

    def _same_reference(self, task: Task) -> None:
        """Verdicts on another source say nothing about this one."""
        before = self._recalled.task if self._recalled else None
        if before is not None and before.source_hash != task.source_hash:
            raise UsageError(
                f"{self.reference.name} has changed since this run",
                "What the run found was judged against the old reference.",
                f"Start a new run: cudal1-tui {self.reference.name}",
            )

    async def _prepare(self) -> None:
        with suppress(Cudal1Error):  # told when candidates are asked for
            await self._policy.prepare()

    async def _play_rounds(self, task: Task) -> Reason:
        budget = self.options.budget_s if self._round < self.options.rounds else None
        while self._round < self._planned:
            await self._gate.wait()
            if self._watch.left(budget) <= 0:
                return "budget"
            if self._update_asked or (self.options.update and self._round):
                await self._update()
            self._round += 1
            written = await self._play_round(task, self._round, budget)
            if self._watch.left(budget) <= 0:
                return "budget"
            if not written:
                return "done"
        return "done"

    def _trainer(self) -> Updater:
        """Raises UsageError where there is no model that could be trained."""
        if self._updater is None:
            if self._make_updater is None:
                raise UsageError("This run does not train a model", "", "Start one with: cudal1-tui MODULE.py")
            self._updater = self._make_updater()
        return self._updater

    async def _update(self) -> None:
        """One step of training; where it fails, that is told and the model stays as it is."""
        self._update_asked = False
        try:
            adapter = await self._trainer().step(lambda what: self._emit(PolicyLoading(what=what)))
            await self.adapt(adapter)
        except (PolicyError, UsageError) as error:
            self._tell_trouble(error)
        finally:
            self._emit(PolicyLoading(what=""))

    async def _play_round(self, task: Task, number: int, budget: float | None) -> int:
        """Returns how many candidates were judged or stopped; 0 means that the policy has nothing more."""
        shown, text = await self._fitting(task, self._choose(task, number))
        seed = random.Random(f"{self.options.seed}/{number}").getrandbits(31)
        asked = Prompt(task=task, round=number, text=text, exemplars=shown, history=self._history(), seed=seed)
        ids = tuple(judged.candidate.id for judged in shown)
        self._emit(RoundStarted(round=number, exemplars=ids, prompt=asked.text))
        group = self._group = Group()
        for id in [id for id in self._stopped if self.decisions.get(id) != "dismissed"]:
            group.put(self._stopped.pop(id))
        group.add(self._write_group(asked, group, self.options.group))
        verdicts: list[Verdict] = []
        stopped = 0
        try:
            while (written := await self._next(group, budget)) is not None:
                await self._gate.wait()
                verdict = await self._judge_unless_stopped(written.candidate)
                if verdict is None:
                    self._stopped[written.candidate.id] = written
                    stopped += 1
                    continue
                verdicts.append(verdict)
                if self._watch.left(budget) <= 0:
                    break
                if (again := self._repair(written, verdict)) is not None:
                    group.add(self._write_group(again, group, 1, written.candidate))
        finally:
            self._group = None
            failure = await group.end()
        if failure is not None:
            raise failure
        best = self.best
        self._emit(
            RoundFinished(
                round=number,
                accepted=sum(verdict.accepted for verdict in verdicts),
                rejected=sum(verdict.verdict == "rejected" for verdict in verdicts),
                best=best.candidate.id if best else None,
                best_speedup=best.verdict.speedup if best else None,
            )
        )
        return len(verdicts) + stopped

    async def _fitting(self, task: Task, chosen: tuple[Judged, ...]) -> tuple[tuple[Judged, ...], str]:
        """Exemplars and prompt as they fit the policy's context: exemplars are given up, the task never."""
        choices = prompt.shorter(chosen)
        texts = [prompt.build_prompt(task, choice, self.options.prompt) for choice in choices]
        index = await self._policy.fit(texts)
        return choices[index], texts[index]

    def _repair(self, written: Written, verdict: Verdict) -> Prompt | None:
        """What the policy is asked of a rejected candidate; None where it is left as it is."""
        asked = written.asked
        if verdict.verdict != "rejected" or not self._policy.converses or len(asked.turns) >= self.options.repair:
            return None
        reply = prompt.build_repair(verdict, self.options.prompt.templates)
        return replace(asked, turns=(*asked.turns, Turn(written.candidate.text, reply)))

    async def _next(self, group: Group, budget: float | None) -> Written | None:
        """The next candidate to judge; None when the group is complete or the budget spent."""
        while (left := self._watch.left(budget)) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left if budget is not None else None):
                    return await group.next()
        return None

    async def _write_group(self, asked: Prompt, group: Group, n: int, mended: Candidate | None = None) -> None:
        ids: dict[int, str] = {}
        open_texts: dict[int, list[str]] = {}
        stream = self._policy.generate(asked, n)
        try:
            async for fragment in stream:
                await self._gate.wait()
                if (trouble := fragment.trouble) is not None:  # costs this candidate, not the run
                    self._tell_trouble(trouble)
                    if fragment.index not in ids:
                        continue
                if fragment.index not in ids:
                    self._written += 1
                    ids[fragment.index] = f"c{self._written:02d}"
                    open_texts[fragment.index] = []
                    self._writing[ids[fragment.index]] = asked, fragment.index
                candidate = ids[fragment.index]
                if fragment.text:
                    open_texts[fragment.index].append(fragment.text)
                if fragment.text and self.decisions.get(candidate) != "dismissed":
                    self._emit(TokenArrived(candidate=candidate, text=fragment.text))
                if fragment.done:
                    text = "".join(open_texts.pop(fragment.index))
                    self._hand_over(candidate, text, fragment, asked, group, mended)
            for index, pieces in open_texts.items():  # cut off by the policy: judged as it stands
                self._hand_over(ids[index], "".join(pieces), Fragment(index, ""), asked, group, mended)
        finally:
            for candidate in ids.values():
                self._writing.pop(candidate, None)
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    def _hand_over(
        self, id: str, text: str, last: Fragment, asked: Prompt, group: Group, mended: Candidate | None
    ) -> None:
        candidate = Candidate(
            id=id,
            round=asked.round,
            policy=self._policy.name,
            source=extract_code(text),
            text=text,
            title=last.title or (f"repair of {mended.id}" if mended else ""),
            techniques=last.techniques,
            exemplars=tuple(judged.candidate.id for judged in asked.exemplars),
            prompt=asked.turns[-1].reply if asked.turns else "",
            repairs=mended.id if mended else "",
        )
        del self._writing[id]
        self._emit(CandidateWritten(candidate=candidate))
        if self.decisions.get(id) != "dismissed":  # a text that was cut off is worth nothing
            self._emit(StageStarted(candidate=id, stage="queued"))
            self._put(Written(candidate, asked), group)

    def _put(self, written: Written, group: Group) -> None:
        """Into the referee's queue; what calls a compiler, once that is done."""
        candidate, referee = written.candidate, self._referee
        known = candidate.source_hash in self._verdicts
        if not known and isinstance(referee, BuildsAhead) and referee.builds_ahead(candidate.source):
            group.add(self._build(written, group, referee))
        else:
            group.put(written)

    async def _build(self, written: Written, group: Group, referee: BuildsAhead) -> None:
        await self._gate.wait()
        id = written.candidate.id
        if self.decisions.get(id) != "dismissed":
            building = asyncio.create_task(
                referee.build_ahead(id, written.candidate.source, self._emit), name="build ahead"
            )
            self._building[id] = building
            try:
                await asyncio.wait([building])
            finally:
                del self._building[id]
                building.cancel()
                await asyncio.wait([building])
            if not building.cancelled():
                building.exception()  # looked at; what it means for the referee shows when the candidate is judged
        group.put(written)

    async def _judge_unless_stopped(self, candidate: Candidate) -> Verdict | None:
        """None where the person dismissed the candidate before its verdict."""
        if self.decisions.get(candidate.id) == "dismissed":
            return None
        judging = asyncio.create_task(self._judge(candidate), name="judge")
        self._at_work = candidate.id, judging
        try:
            await asyncio.wait([judging])
        finally:
            self._at_work = None
            judging.cancel()
            await asyncio.wait([judging])
        return None if judging.cancelled() else judging.result()

    async def _judge(self, candidate: Candidate) -> Verdict:
        advice = await self._adviser.advise(candidate.source)
        self._emit(AdviceGiven(candidate=candidate.id, advice=advice))
        started = time.monotonic()
        verdict = self._verdicts.get(candidate.source_hash)  # the same code twice in a run is judged once
        if verdict is None:
            verdict = await self._verdict(candidate)
            if verdict.verdict != "unjudgeable":
                self._verdicts[candidate.source_hash] = verdict
        best = self.best
        self.judged[candidate.id] = judged = Judged(candidate, verdict)
        seconds = time.monotonic() - started
        self._emit(VerdictReached(candidate=candidate.id, verdict=verdict, seconds=seconds))
        await self._adviser.learn(judged)
        if self._adviser.wants_review(verdict, best.verdict.speedup if best else None):
            review = asyncio.create_task(self._review(candidate, advice), name="review")
            self._reviews.add(review)
            review.add_done_callback(self._reviews.discard)
        return verdict

    async def _review(self, candidate: Candidate, advice: Advice) -> None:
        assert self.task is not None
        reviewed = await self._adviser.review(self.task.source, candidate.source, advice)
        self._emit(AdviceGiven(candidate=candidate.id, advice=reviewed))

    async def _verdict(self, candidate: Candidate) -> Verdict:
        """The referee's own failure is told and leaves this candidate unjudged; the run ends when it stays."""
        try:
            verdict = await self._referee.judge(candidate.id, candidate.source, self._emit)
        except (RefereeError, UnjudgeableError) as error:
            self._failures += 1
            if self._failures >= MOST_FAILURES:
                raise
            self._tell_trouble(error)
            return Verdict("unjudgeable", category="unsupported", reason=error.title)
        self._failures = 0
        return verdict

    def _history(self) -> tuple[Judged, ...]:
        return tuple(
            Judged(judged.candidate, judged.verdict, fed=self.decisions.get(id) == "fed")
            for id, judged in self.judged.items()
        )

    def _choose(self, task: Task, number: int) -> tuple[Judged, ...]:
        try:
            earlier = self._archive.pool(task, self.folder.id)
        except sqlite3.Error:  # the journal tells of a broken archive
            earlier = ()
        dismissed = {id for id, decision in self.decisions.items() if decision == "dismissed"}
        seed = random.Random(f"{self.options.seed}/{number}/exemplars").getrandbits(31)
        chosen = exemplars.choose((*self._history(), *earlier), self.options.exemplars, seed, dismissed)
        with suppress(sqlite3.Error):
            return self._archive.whole(chosen)
        return chosen

    def _started(self) -> RunStarted:
        return RunStarted(
            run=self.folder.id,
            reference=str(self.reference.resolve()),
            policy=self._policy.name,
            device=self.options.judge.device,
            rounds=self.options.rounds,
            group=self.options.group,
            budget_s=self.options.budget_s,
            folder=str(self.folder.path or ""),
        )

    def _emit(self, event: Event) -> None:
        trouble = self._journal.record(event)
        self._queue.put_nowait(event)
        if trouble is not None:
            self._emit(trouble)

    def _tell_trouble(self, error: Cudal1Error) -> None:
        self._emit(TroubleMet(title=error.title, meaning=error.meaning, next_step=error.next_step))

    def _finish(self, reason: Reason) -> None:
        self.ended = reason
        best = self.best
        self._emit(
            RunFinished(
                reason=reason,
                best=best.candidate.id if best else None,
                best_speedup=best.verdict.speedup if best else None,
            )
        )

    def _fail(self, error: Exception) -> None:
        self.error = error
        if isinstance(error, Cudal1Error):
            self._tell_trouble(error)
        else:
            self._emit(
                TroubleMet(
                    title="cudal1-tui itself failed",
                    meaning=f"{type(error).__name__}: {error}",
                    next_step=self._keep_traceback(error),
                )
            )
        self._finish("failed")

    def _keep_traceback(self, error: Exception) -> str:
        if self.folder.logs is None:
            return ""
        path = self.folder.logs / "traceback.txt"
        with suppress(OSError):
            path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
        return f"The traceback is in {path}; please report it."

    async def _stop(self) -> None:
        endings: set[asyncio.Task[None]] = set()
        if self._driver is not None:
            self._driver.cancel()
            endings.add(self._driver)
            await asyncio.wait(endings, timeout=STOP_S / 2)  # a judgement ends its own processes first
        if self._preparing is not None:
            self._preparing.cancel()
            endings.add(self._preparing)
        for review in self._reviews:
            review.cancel()
        closers = (self._referee.close(), self._policy.close(), self._adviser.close())
        endings |= {*self._reviews, *(asyncio.create_task(closing) for closing in closers)}
        done, late = await asyncio.wait(endings, timeout=STOP_S / 2)
        for task in late:
            task.cancel()
        for task in done:
            if not task.cancelled():
                task.exception()  # looked at, so that asyncio does not complain; a child that is gone is gone
        if self.ended is None and self._driver is not None:
            self._finish("stopped")
        if not self.options.keep_open:
            self._queue.put_nowait(None)
