"""A scripted referee and policy: what a run needs, without processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cudal1_core.archive import Archive
from cudal1_core.candidate import source_hash
from cudal1_core.events import BaselineTimed, CheckFinished, Event, StageStarted, TimingSampled
from cudal1_core.paths import RunFolder
from cudal1_core.policies.base import Fragment, Prompt
from cudal1_core.reference import Task
from cudal1_core.rounds import Run, RunOptions
from cudal1_core.verdict import Check, Verdict

# What a policy does in one round: write a piece, fail, or wait.
Group = list[Fragment | Exception | asyncio.Event]

SOURCE = "class Model: ...\n"


def make_task(source: str = SOURCE, device_name: str = "a processor", model: str = "Model") -> Task:
    return Task(
        path="/w/model.py",
        model=model,
        source=source,
        source_hash=source_hash(source),
        device="cpu",
        device_name=device_name,
        dtype="float32",
        inputs=("float32[4]",),
        outputs=("float32[4]",),
        parameters=0,
    )


def code(name: str) -> str:
    return f"class ModelNew:\n    name = {name!r}\n"


@dataclass
class ScriptedReferee:
    """Answers by the word that follows `name =` in the source; unknown words are accepted at 1.0."""

    verdicts: dict[str, Verdict | Exception] = field(default_factory=dict)
    task: Task | Exception = field(default_factory=make_task)
    judged: list[str] = field(default_factory=list)
    closed: int = 0
    gate: asyncio.Event | None = None  # where set, a judgement waits for it
    judging: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self, reference: Path) -> Task:
        if isinstance(self.task, Exception):
            raise self.task
        return self.task

    def baselines(self) -> list[Event]:
        return [BaselineTimed(baseline="eager", ms=2.0)]

    async def judge(self, candidate_id: str, source: str, emit: Callable[[Event], None]) -> Verdict:
        self.judged.append(candidate_id)
        self.judging.set()
        for stage in ("building", "checking", "timing"):
            emit(StageStarted(candidate=candidate_id, stage=stage))  # type: ignore[arg-type]
        emit(CheckFinished(candidate=candidate_id, check=Check("values", True, "all equal")))
        emit(
            TimingSampled(
                candidate=candidate_id,
                reference_ms=2.0,
                candidate_ms=1.0,
                speedup=2.0,
                interval=(1.9, 2.1),
                blocks=3,
            )
        )
        if self.gate is not None:
            await self.gate.wait()
        word = source.split("'")[1] if "'" in source else ""
        answer = self.verdicts.get(word, Verdict("accepted", speedup=1.0, speedup_interval=(0.9, 1.1)))
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        self.closed += 1


@dataclass
class ScriptedPolicy:
    """Plays groups of fragments, one group a round; nothing more after the last."""

    groups: list[Group]
    name: str = "scripted"
    converses: bool = False
    room: int | None = None  # characters a prompt may have
    prompts: list[Prompt] = field(default_factory=list)
    closed: int = 0

    async def prepare(self) -> None:
        """Nothing to start."""

    async def fit(self, texts: Sequence[str]) -> int:
        return next(index for index, text in enumerate(texts) if self.room is None or len(text) <= self.room)

    async def generate(self, prompt: Prompt, n: int) -> AsyncIterator[Fragment]:
        self.prompts.append(prompt)
        for step in self.groups.pop(0) if self.groups else ():
            if isinstance(step, Exception):
                raise step
            if isinstance(step, asyncio.Event):
                await step.wait()
            else:
                yield step

    async def close(self) -> None:
        self.closed += 1


def whole(*names: str) -> Group:
    """A group of candidates that are each there at once."""
    return [Fragment(index, code(name), done=True, title=name, techniques=(name,)) for index, name in enumerate(names)]


@dataclass
class Bench:
    """Everything around a run, and the way to make one."""

    folder: RunFolder
    archive: Archive
    referee: ScriptedReferee
    policy: ScriptedPolicy

    def run(self, *groups: Group, **options: object) -> Run:
        self.policy.groups = list(groups)
        chosen = RunOptions(**{"rounds": max(1, len(groups)), **options})  # type: ignore[arg-type]
        return Run(Path("/w/model.py"), chosen, self.referee, self.policy, self.archive, self.folder)


async def told(run: Run) -> list[Event]:
    return [event async for event in run.events()]
