"""The final report: held-out tasks after each stage, what kind of wins they were, and what it cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cudal1_core.bench.figures import by_win, figures, outcomes
from cudal1_core.bench.row import Row

from cudal1_training.folder import TrainingFolder, write_whole
from cudal1_training.settings import flat

NOT_BUILT = ("no_code", "build_failed")
TOLD = ("rl.exemplars", "rl.smoothing", "rl.beta", "rl.allow_not_drop_in", "model.lora_rank", "sft.teachers",
        "tasks.held_out", "seed")  # fmt: skip


@dataclass(frozen=True, slots=True)
class StageFigures:
    """Counts are tasks whose best answer did it; speedups are over the right ones."""

    stage: str
    tasks: int
    answers: int
    has_code: int
    builds: int
    right: int
    faster: int
    right_answers: int
    mean: float | None
    geomean: float | None
    median: float | None
    wins: dict[str, int]  # kind of win -> tasks

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def stage_figures(stage: str, rows: Sequence[Row]) -> StageFigures:
    found = outcomes(rows)
    whole = figures(stage, found)
    return StageFigures(
        stage=stage,
        tasks=len(found),
        answers=len(rows),
        has_code=whole.with_code,
        builds=sum(any(_builds(row) for row in outcome.rows) for outcome in found),
        right=whole.accepted,
        faster=whole.faster,
        right_answers=sum(row.verdict.accepted for row in rows),
        mean=whole.mean,
        geomean=whole.geomean,
        median=whole.median,
        wins={share.name: share.count for share in by_win(found)},
    )


def write_report(
    folder: TrainingFolder, model: str, stages: Sequence[StageFigures], tasks: int, held_out: int, gpus: int
) -> str:
    """Writes report.md and report.json; returns the Markdown."""
    seconds = folder.state.seconds
    data = {
        "model": model,
        "tasks": tasks,
        "held_out": held_out,
        "stages": [stage.to_json() for stage in stages],
        "seconds": seconds,
        "gpus": gpus,
        "settings": flat(folder.settings),
    }
    text = _markdown(folder, model, stages, tasks, held_out, gpus)
    place = folder.sub("report")
    write_whole(place / "report.json", json.dumps(data, indent=1) + "\n")
    write_whole(place / "report.md", text)
    return text


def _markdown(
    folder: TrainingFolder, model: str, stages: Sequence[StageFigures], tasks: int, held_out: int, gpus: int
) -> str:
    lines = [f"# Training of {model}", "", f"{tasks} tasks trained on, {held_out} of other families held out.", ""]
    if not stages or not held_out:
        lines += ["No held-out task was judged (report.samples is 0, or nothing is held out).", ""]
    else:
        answers = max(stage.answers // max(1, stage.tasks) for stage in stages)
        lines += [
            f"Held-out tasks, the best of {answers} answers each, prompts without earlier code:",
            "",
            "| after | tasks | has code | builds | right | > 1.01x | mean | geomean | median | right answers |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        lines += [
            f"| {one.stage} | {one.tasks} | {one.has_code} | {one.builds} | {one.right} | {one.faster} | "
            f"{_speed(one.mean)} | {_speed(one.geomean)} | {_speed(one.median)} | {one.right_answers}/{one.answers} |"
            for one in stages
        ]
        lines += ["", "Kinds of wins (what really ran, by the candidate's own process):", ""]
        for one in stages:
            lines.append(f"- after {one.stage}: " + (", ".join(f"{k} {v}" for k, v in one.wins.items()) or "none"))
        lines.append("")
    total = sum(folder.state.seconds.values())
    cost = f"{total * gpus / 3600:.2f} GPU hours on {gpus} GPU{'s' if gpus > 1 else ''}" if gpus else "no GPU"
    lines += [
        "## Cost",
        "",
        f"{total / 3600:.2f} hours of wall time, {cost}.",
        "",
        "| part | seconds |",
        "| --- | --- |",
    ]
    lines += [f"| {name} | {seconds:.0f} |" for name, seconds in sorted(folder.state.seconds.items())]
    waits = _waiting(folder.state.seconds)
    if waits is not None:
        lines += ["", f"Stage three waited for the referee {waits:.0%} of its time."]
    settings = flat(folder.settings)
    lines += ["", "## Settings that ablations change", ""]
    lines += [f"- `{name}` = {json.dumps(settings[name])}" for name in TOLD]
    return "\n".join(lines) + "\n"


def _waiting(seconds: dict[str, float]) -> float | None:
    """Share of stage three's time in which the trainer waits for verdicts."""
    judging, training = seconds.get("rl judging", 0.0), seconds.get("rl training", 0.0)
    return judging / (judging + training) if judging + training > 0 else None


def _builds(row: Row) -> bool:
    return not row.unjudged and row.verdict.category not in NOT_BUILT


def _speed(value: float | None) -> str:
    return f"{value:.2f}x" if value is not None else "–"
