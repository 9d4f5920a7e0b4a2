"""Stage two: sample from the model, judge, keep what is right, tune on it, and again (CUDA-L1, arXiv 2507.14111).

The paper calls this self-supervised learning; it is fine-tuning by rejection sampling, the same as REINFORCE with
reward 1 for right and 0 for wrong and no baseline. Speed does not count here.
"""

from __future__ import annotations

import random
import time
from dataclasses import replace

from cudal1_core.candidate import Candidate
from cudal1_core.errors import UsageError
from cudal1_core.policies.base import Judged
from cudal1_core.prompt import PromptOptions
from cudal1_core.verdict import Verdict

from cudal1_training import models, sft
from cudal1_training.examples import Example, of_task
from cudal1_training.folder import append_line, read_lines
from cudal1_training.groups import Answer, Group
from cudal1_training.models import Start
from cudal1_training.work import Work, mine, rank, together, world
from cudal1_training.writing import Writer, fitting


def run(work: Work, start: Start) -> Start:
    """All rounds. A round without anything right changes nothing; two of them in a row end the stage."""
    settings = work.settings.self
    barren = 0
    for number in range(1, settings.rounds + 1):
        folder = work.folder.sub("self", f"round-{number}")
        if (folder / "result").exists() and (folder / "done").exists():
            start = sft.result_of(folder, start)
            continue
        sample(work, start, number)
        together()
        examples = right(work, number)
        barren = 0 if examples else barren + 1
        if examples:
            start = sft.tune(
                work,
                f"self/round-{number}",
                examples,
                start,
                steps=settings.steps,
                epochs=settings.epochs,
                learning_rate=settings.learning_rate,
            )
            if rank() == 0:
                (folder / "done").touch()
        elif rank() == 0:
            work.tell.trouble(
                f"Round {number} of sampling brought nothing right",
                "There is nothing to tune on, and the model stays as it is.",
                "Train stage one longer or on more code, or take a larger model.",
            )
        if barren == 2:
            break
    return start


def sample(work: Work, start: Start, number: int) -> None:
    """Candidates for every task, judged; tasks that are done are not done again after a kill."""
    settings, clock = work.settings.self, time.monotonic()
    notes = work.folder.path / "self" / f"round-{number}" / "samples.jsonl"
    done = {row["task"] for row in read_lines(notes)}
    together()
    left = mine([(place, name) for place, name in enumerate(sorted(work.tasks), start=1) if name not in done])
    what = f"round {number}: sampling and judging"
    steps = work.tell.phase("self", what, len(work.tasks), len(done), share=world())
    if not left:
        return
    groups = work.groups("self", "self")
    writer = Writer(models.load_to_write(start, work.settings.model), work.tell)
    waited = work.referees.seconds
    try:
        for place, name in left:
            work.stop.check()
            task = work.tasks[name]
            fitted = fitting(
                writer.loaded.tokenizer, writer.loaded.context, settings.longest, task, (), PromptOptions()
            )
            if fitted is None:
                append_line(notes, {"task": name, "right": [], "fits": False})
                continue
            group = Group(task, (number - 1) * len(work.tasks) + place, fitted[1])
            groups.begin(group)
            ids = [f"f{number}-{place}-{index}" for index in range(1, settings.samples + 1)]
            seed = random.Random(f"self {work.settings.seed}/{number}/{name}").getrandbits(31)
            texts = writer.write(
                fitted[1], ids, longest=settings.longest, temperature=settings.temperature, seed=seed
            )  # fmt: skip
            (judged,) = groups.judge([(group, [Answer(id, text) for id, text in zip(ids, texts, strict=True)])])
            good = [_row(one) for one in judged if one.verdict.accepted]
            append_line(notes, {"task": name, "right": good, "samples": len(judged)})
            steps.step(right=len(good) / len(judged))
    finally:
        writer.close()
        work.folder.spent("self judging", work.referees.seconds - waited)
        work.folder.spent("self sampling", time.monotonic() - clock - (work.referees.seconds - waited))
    if not any(row.get("fits", True) for row in read_lines(notes)):
        raise UsageError(
            "No task fits into the model's context",
            f"An answer of {settings.longest} tokens leaves no room for any prompt.",
            "Lower self.longest, or take a model with a longer context.",
        )


def right(work: Work, number: int) -> list[Example]:
    """What was right in this round and the rounds before, each program once."""
    found: dict[str, list[Judged]] = {}
    for earlier in range(1, number + 1):
        for row in read_lines(work.folder.path / "self" / f"round-{earlier}" / "samples.jsonl"):
            found.setdefault(row["task"], []).extend(_judged(one) for one in row["right"])
    most = work.settings.sft.most
    return [
        example
        for name, judged in sorted(found.items())
        if name in work.tasks
        for example in of_task(name, work.tasks[name], judged, most)
    ]


def _row(judged: Judged) -> dict[str, object]:
    candidate, verdict = judged.candidate, replace(judged.verdict, checks=(), isolation=())
    return {"id": candidate.id, "source": candidate.source, "text": candidate.text, "verdict": verdict.to_json()}


def _judged(row: dict[str, object]) -> Judged:
    candidate = Candidate(str(row["id"]), 0, "self", str(row["source"]), str(row["text"]))
    return Judged(candidate, Verdict.from_json(row["verdict"]))  # type: ignore[arg-type]
