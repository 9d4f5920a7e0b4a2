"""How a model does on held-out tasks: a few answers each, judged, as rows that `cudal1-tui bench report` reads too."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cudal1_core.bench.judging import base_row
from cudal1_core.bench.row import Row, options_facts
from cudal1_core.bench.suites import Source, Subject
from cudal1_core.policies.base import Judged
from cudal1_core.prompt import PromptOptions
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.reference import Task

from cudal1_training import models
from cudal1_training.folder import append_line
from cudal1_training.groups import Answer, Group
from cudal1_training.models import Start
from cudal1_training.work import Work, mine, together, world
from cudal1_training.writing import Writer, fitting


def evaluate(work: Work, stage: str, start: Start, options: JudgeOptions) -> None:
    """Writes rows of every held-out task, `report.samples` each; what was judged before a kill is not judged again.

    Prompts show no earlier code, so that stages differ in the model alone.
    """
    settings, clock = work.settings.report, time.monotonic()
    path = work.folder.sub("report") / f"{stage}.jsonl"
    done = {row.task for row in read_rows(path)}
    together()
    chosen = sorted(work.held_out)[: settings.tasks or None]
    left = mine([(place, name) for place, name in enumerate(chosen, start=1) if name not in done])
    if not left:
        return
    steps = work.tell.phase("report", f"held-out tasks after {stage}", len(chosen), len(done), share=world())
    waited = work.referees.seconds
    groups = work.groups(stage, "report", kept=False)
    writer = Writer(models.load_to_write(start, work.settings.model), work.tell)
    try:
        for place, name in left:
            work.stop.check()
            task = work.held_out[name]
            fitted = fitting(
                writer.loaded.tokenizer, writer.loaded.context, settings.longest, task, (), PromptOptions()
            )
            group = Group(task, place, fitted[1] if fitted else "")
            groups.begin(group)
            answers = _answers(writer, work, stage, group, name)
            (judged,) = groups.judge([(group, answers)])
            append_line(
                path.with_name(f"{stage}-answers.jsonl"), {"task": name, "texts": [one.text for one in answers]}
            )
            new = [_row(task, name, stage, one, options) for one in judged]
            with path.open("ab", buffering=0) as file:
                file.write("".join(f"{row.to_json()}\n" for row in new).encode())
            steps.step(right=sum(one.verdict.accepted for one in judged) / max(1, len(judged)))
    finally:
        writer.close()
        work.folder.spent("report judging", work.referees.seconds - waited)
        work.folder.spent("report sampling", time.monotonic() - clock - (work.referees.seconds - waited))


def read_rows(path: Path) -> list[Row]:
    """Whole tasks only: rows of one are written together."""
    found = []
    for line in path.read_text("utf-8", "replace").splitlines() if path.exists() else ():
        try:
            found.append(Row.from_json(line))
        except ValueError:
            continue
    return found


def _answers(writer: Writer, work: Work, stage: str, group: Group, name: str) -> Sequence[Answer]:
    """What was written; a task that does not fit the model gets empty answers."""
    settings = work.settings.report
    ids = [f"{stage}-h{group.number}-{index}" for index in range(1, settings.samples + 1)]
    if not group.prompt:
        return [Answer(id, "") for id in ids]
    seed = random.Random(f"report {work.settings.seed}/{name}").getrandbits(31)  # the same for all stages
    texts = writer.write(group.prompt, ids, longest=settings.longest, temperature=settings.temperature, seed=seed)
    return [Answer(id, text) for id, text in zip(ids, texts, strict=True)]


def _row(task: Task, name: str, stage: str, judged: Judged, options: JudgeOptions) -> Row:
    subject = Subject(name, task.source, Path(task.path))
    base = base_row(subject, Source(judged.candidate.id, judged.candidate.source), options_facts(options))
    return replace(base, policy=stage, verdict=judged.verdict, at=time.time())
