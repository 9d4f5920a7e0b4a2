"""`--dry-run`: what would be trained on, without reading a task or loading a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cudal1_core.archive import Archive
from cudal1_core.reference import Task
from transformers import AutoConfig

from cudal1_training import models
from cudal1_training.examples import from_archive
from cudal1_training.folder import TrainingFolder
from cudal1_training.settings import Settings
from cudal1_training.tasks import TrainTask, find_tasks, read_split, split


def plan(stages: Sequence[str], folder: TrainingFolder, archive: Archive, device: str) -> str:
    """Markdown. Raises UsageError for all that would end the training at its start."""
    settings = folder.settings
    start = models.find_model(settings.model, folder, lambda what: None)
    kept = folder.path / "split.json"
    if kept.exists():
        tasks = read_split(kept)
    else:
        found = find_tasks(settings.tasks, archive, folder.path / "tasks", device, settings.seed)
        tasks = split(found, settings.tasks.held_out, settings.seed)
    lines = ["# What would be trained", "", _model(settings, start.base), ""]
    lines += _tasks("trained on", [task for task in tasks if not task.held_out])
    lines += _tasks("held out", [task for task in tasks if task.held_out])
    lines += ["", *_examples(settings, archive, tasks), "", *(_stage(settings, stage) for stage in stages), ""]
    return "\n".join(lines)


def _model(settings: Settings, base: str) -> str:
    needed, free, place = models.memory(AutoConfig.from_pretrained(base), settings.model)
    how = f"LoRA of rank {settings.model.lora_rank}" if settings.model.lora_rank else "all weights"
    return (
        f"Model {settings.model.name}, {how}, on {models.device(settings.model)}: needs at least "
        f"{needed / 1e9:.2f} GB, {place} has {free / 1e9:.1f} GB free."
    )


def _tasks(word: str, tasks: Sequence[TrainTask]) -> list[str]:
    families = Counter(task.family for task in tasks)
    lines = [f"- {len(tasks)} tasks {word}, {len(families)} families"]
    for family, count in families.most_common(8):
        names = [task.name for task in tasks if task.family == family]
        lines.append(f"  - {family}: {count} ({', '.join(names[:3])}{', ...' if count > 3 else ''})")
    if len(families) > 8:
        lines.append(f"  - and {len(families) - 8} more families")
    return lines


def _examples(settings: Settings, archive: Archive, tasks: Sequence[TrainTask]) -> list[str]:
    hashes = {task.source_hash for task in tasks if not task.held_out}
    known: dict[str, Task] = {
        f"{Path(task.path).stem}-{task.device_name}": task for task in archive.tasks() if task.source_hash in hashes
    }
    found = from_archive(archive, known, settings.sft.most)
    right = f"{len(found)} different right programs for {len({one.task for one in found})} of these tasks"
    return [f"The archive holds {right}. Teachers of stage one: {', '.join(settings.sft.teachers)}."]


def _stage(settings: Settings, stage: str) -> str:
    if stage == "sft":
        how = f"{settings.sft.steps} steps" if settings.sft.steps else f"{settings.sft.epochs:g} epochs"
        return f"- sft: {how} of {settings.sft.batch} examples"
    if stage == "self":
        return f"- self: {settings.self.rounds} rounds of {settings.self.samples} answers a task"
    rl = settings.rl
    smoothing = f"clipped at {rl.clip:g}" if rl.smoothing else "not smoothed"
    return (
        f"- rl: {rl.steps} steps of {rl.prompts} prompts x {rl.group} answers, {rl.steps * rl.prompts * rl.group} "
        f"judgements; exemplars {rl.exemplars}; rewards {smoothing}"
    )
