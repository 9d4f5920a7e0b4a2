"""One group: a prompt, the answers to it, and a verdict each; told as events and kept in the archive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cudal1_core.candidate import Candidate
from cudal1_core.events import (
    CandidateWritten,
    Event,
    RoundFinished,
    RoundStarted,
    StageStarted,
    TaskDescribed,
    VerdictReached,
)
from cudal1_core.extract import extract_code
from cudal1_core.policies.base import Judged
from cudal1_core.reference import Task
from cudal1_core.verdict import Verdict

from cudal1_training.book import Book
from cudal1_training.referees import Asked, Referees


@dataclass(frozen=True, slots=True)
class Answer:
    """What a policy wrote for one candidate."""

    id: str
    text: str
    title: str = ""
    techniques: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    task: Task
    number: int  # from 1, within its stage
    prompt: str
    exemplars: tuple[str, ...] = ()  # ids


class Groups:
    """`book` is None where results are not for the archive: what held-out tasks are measured by."""

    def __init__(self, policy: str, tell: Callable[[Event], None], book: Book | None, referees: Referees) -> None:
        self._policy = policy
        self._tell = tell
        self._book = book
        self._referees = referees

    def begin(self, group: Group) -> None:
        self._tell(TaskDescribed(task=group.task))
        self._keep(group.task, RoundStarted(round=group.number, exemplars=group.exemplars, prompt=group.prompt))

    def judge(self, asked: Sequence[tuple[Group, Sequence[Answer]]]) -> list[list[Judged]]:
        """The candidates of several groups, judged together, in order. Raises PausedError."""
        work: list[Asked] = []
        for group, answers in asked:
            for answer in answers:
                candidate = Candidate(
                    id=answer.id,
                    round=group.number,
                    policy=self._policy,
                    source=extract_code(answer.text),
                    text=answer.text,
                    title=answer.title,
                    techniques=answer.techniques,
                    exemplars=group.exemplars,
                )
                self._keep(group.task, CandidateWritten(candidate=candidate))
                self._tell(StageStarted(candidate=candidate.id, stage="queued"))
                work.append(Asked(group.task, candidate))

        def keep(place: int, verdict: Verdict) -> None:
            one = work[place]
            if self._book is not None:
                self._book.record(
                    one.task, VerdictReached(candidate=one.candidate.id, verdict=verdict, seconds=0.0)
                )  # fmt: skip

        verdicts = iter(self._referees.judge(work, keep))
        done = iter(work)
        found = []
        for group, answers in asked:
            judged = [Judged(next(done).candidate, next(verdicts)) for _ in answers]
            self._finish(group, judged)
            found.append(judged)
        return found

    def _finish(self, group: Group, judged: Sequence[Judged]) -> None:
        right = [one for one in judged if one.verdict.accepted]
        best = max(right, key=lambda one: one.verdict.speedup or 0.0, default=None)
        self._keep(
            group.task,
            RoundFinished(
                round=group.number,
                accepted=len(right),
                rejected=sum(one.verdict.verdict == "rejected" for one in judged),
                best=best.candidate.id if best else None,
                best_speedup=best.verdict.speedup if best else None,
            ),
        )

    def _keep(self, task: Task, event: Event) -> None:
        if self._book is not None:
            self._book.record(task, event)
        self._tell(event)
