"""Code for stage one: teachers write, the referee judges, and what is right goes to the archive.

As in CUDA-L1 (arXiv 2507.14111, stage one): of a teacher and task up to 20 trials, until two are right. Here "right"
is the referee's accepted and drop-in.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path

from cudal1_core.bench.suites import Subject, with_candidates
from cudal1_core.errors import PolicyError, UsageError
from cudal1_core.events import Event, TokenArrived, TroubleMet
from cudal1_core.exemplars import eligible
from cudal1_core.policies import make_policy
from cudal1_core.policies.base import Fragment, Judged, Policy, Prompt
from cudal1_core.prompt import build_prompt
from cudal1_core.reference import Task

from cudal1_training.folder import TrainingFolder, append_line, read_lines
from cudal1_training.groups import Answer, Group, Groups
from cudal1_training.settings import SftSettings
from cudal1_training.telling import Teller
from cudal1_training.work import mine, together, world

AT_ONCE = 4  # trials between two looks at how many were right


def collect(
    tasks: dict[str, Task],
    settings: SftSettings,
    folder: TrainingFolder,
    make_groups: Callable[[str], Groups],
    tell: Teller,
    check: Callable[[], None],
) -> None:
    """Lets every teacher but the archive write. What is done is noted, and not done again after a kill."""
    for name in settings.teachers:
        if name == "archive":
            continue
        notes = folder.sub("sft") / f"{name}.jsonl"
        done = {row["task"] for row in read_lines(notes)}
        together()
        steps = tell.phase("sft", f"collecting code from {name}", len(tasks), len(done), share=world())
        groups = make_groups(name)
        left = mine([(number, task) for number, task in enumerate(sorted(tasks), start=1) if task not in done])
        teacher: _Player | _Teacher
        if name == "replay":
            teacher = _Player(_recorded(tasks, settings), groups)
        else:
            teacher = _Teacher(_policy(name, settings, folder), settings, groups, tell, folder.settings.seed)
        try:
            for number, key in left:
                check()
                trials, right = teacher.teach(number, tasks[key], key)
                append_line(notes, {"task": key, "trials": trials, "right": right})
                steps.step(trials=float(trials), right=float(right))
        finally:
            teacher.close()


class _Player:
    """Plays back what was recorded."""

    def __init__(self, recorded: dict[str, tuple[tuple[str, str], ...]], groups: Groups) -> None:
        self._recorded = recorded
        self._groups = groups

    def teach(self, number: int, task: Task, name: str) -> tuple[int, int]:
        """Trials and how many of them were right."""
        texts = self._recorded.get(name, ())
        if not texts:
            return 0, 0
        group = Group(task, number, build_prompt(task, ()))
        self._groups.begin(group)
        answers = [Answer(f"s{number}-replay-{at}", text, title) for at, (title, text) in enumerate(texts, start=1)]
        (judged,) = self._groups.judge([(group, answers)])
        return len(judged), sum(eligible(one) for one in judged)

    def close(self) -> None:
        """Nothing to end."""


class _Teacher:
    """A policy that writes, in an event loop of its own."""

    def __init__(
        self, policy: Policy, settings: SftSettings, groups: Groups, tell: Callable[[Event], None], seed: int
    ) -> None:
        self._policy = policy
        self._settings = settings
        self._groups = groups
        self._tell = tell
        self._seed = seed
        self._loop = asyncio.new_event_loop()

    def teach(self, number: int, task: Task, name: str) -> tuple[int, int]:
        """Trials and how many of them were right. A task the teacher fails on is told and left."""
        history: list[Judged] = []
        text = build_prompt(task, ())
        group = Group(task, number, text)
        self._groups.begin(group)
        while len(history) < self._settings.trials and self._right(history) < self._settings.successes:
            count = min(AT_ONCE, self._settings.trials - len(history))
            seed = random.Random(f"teach {self._seed}/{name}/{len(history)}").getrandbits(31)
            asked = Prompt(task=task, round=1, text=text, exemplars=(), history=tuple(history), seed=seed)
            first = f"s{number}-{self._policy.name}-"
            try:
                answers = self._loop.run_until_complete(self._answers(asked, count, first, len(history)))
            except PolicyError as error:
                self._tell(TroubleMet(title=f"{name}: {error.title}", meaning=error.meaning, next_step=error.next_step))
                break
            if not answers:
                break
            (judged,) = self._groups.judge([(group, answers)])
            history += judged
        return len(history), self._right(history)

    def close(self) -> None:
        self._loop.run_until_complete(self._policy.close())
        self._loop.close()

    async def _answers(self, asked: Prompt, count: int, first: str, before: int) -> list[Answer]:
        texts: dict[int, list[str]] = {}
        last: dict[int, Fragment] = {}
        async for fragment in self._policy.generate(asked, count):
            texts.setdefault(fragment.index, []).append(fragment.text)
            last[fragment.index] = fragment
            self._tell(TokenArrived(candidate=f"{first}{before + fragment.index + 1}", text=fragment.text))
        return [
            Answer(f"{first}{before + index + 1}", "".join(texts[index]), last[index].title, last[index].techniques)
            for index in sorted(texts)
        ]

    def _right(self, history: Sequence[Judged]) -> int:
        return sum(eligible(judged) for judged in history)


def _policy(name: str, settings: SftSettings, folder: TrainingFolder) -> Policy:
    if name == "openai" and not settings.url:
        raise UsageError("The teacher openai needs an address", "", "Add --set sft.url=http://localhost:8000/v1")
    return make_policy(
        name, url=settings.url or None, model=settings.teacher or None, log_dir=folder.sub("logs")
    )  # fmt: skip


def _recorded(tasks: dict[str, Task], settings: SftSettings) -> dict[str, tuple[tuple[str, str], ...]]:
    """Name and text of what is played back, by task."""
    if not settings.replay:
        raise UsageError("The teacher replay needs what it plays", "", "Add --replay FILE.jsonl or a folder.")
    subjects = [Subject(name, task.source, Path(task.path)) for name, task in tasks.items()]
    found = with_candidates(subjects, Path(settings.replay))
    return {one.task: tuple((source.name, source.text) for source in one.candidates) for one in found}
