"""Stage one: supervised fine-tuning on code that the referee accepted (CUDA-L1, arXiv 2507.14111, stage one)."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from cudal1_core.errors import UsageError
from cudal1_core.events import TrainingPhase
from datasets import Dataset
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from cudal1_training import models
from cudal1_training.collecting import collect
from cudal1_training.examples import Example, fitting, from_archive
from cudal1_training.folder import append_line
from cudal1_training.models import Start
from cudal1_training.watching import SameRandom, Watch, newest_checkpoint
from cudal1_training.work import Work, rank, together, world
from cudal1_training.writing import free_memory, out_of_memory


def run(work: Work, start: Start) -> Start:
    """Collects code, then tunes on it. Raises UsageError where there is none."""
    settings = work.settings.sft
    clock = time.monotonic()
    collect(
        work.tasks,
        settings,
        work.folder,
        lambda teacher: work.groups("sft", teacher),
        work.tell,
        work.stop.check,
    )
    together()
    work.folder.spent("sft collecting", time.monotonic() - clock)
    found = from_archive(work.archive, work.tasks, settings.most, lambda judged: work.wanted(judged.candidate.id))
    if not found:
        raise UsageError(
            "There is no right code to learn from",
            f"Of {len(work.tasks)} tasks, teachers {', '.join(settings.teachers)} brought nothing that is accepted and "
            "loads the reference's weights.",
            "Add a teacher with --teachers: playbook, replay with --replay FILE.jsonl, or openai with sft.url.",
        )
    return tune(
        work,
        "sft",
        found,
        start,
        steps=settings.steps,
        epochs=settings.epochs,
        learning_rate=settings.learning_rate,
    )


def tune(
    work: Work, name: str, examples: Sequence[Example], start: Start, *, steps: int, epochs: float, learning_rate: float
) -> Start:
    """Fine-tunes on the examples in `name`'s folder, from its newest checkpoint where there is one."""
    settings, clock = work.settings, time.monotonic()
    folder = work.folder.sub(*name.split("/"))
    model, tokenizer = models.load_to_train(start, settings.model)
    longest = min(settings.sft.longest, models.context_of(model))
    used = fitting(examples, lambda example: _tokens(tokenizer, example), longest)
    _note(folder, examples, used)
    if not used:
        raise UsageError(
            f"No example fits into {longest} tokens",
            f"All {len(examples)} are longer, prompt and answer together.",
            "Raise sft.longest, or take a model with a longer context.",
        )
    if len(used) < len(examples) and rank() == 0:
        work.tell.trouble(f"{len(examples) - len(used)} of {len(examples)} examples are left out: too long")
    stage = name.partition("/")[0]
    micro = min(settings.sft.micro_batch, settings.sft.batch)
    if rank() == 0:
        os.environ["TENSORBOARD_LOGGING_DIR"] = str(work.folder.path / "tensorboard" / name.replace("/", "-"))
    config = SFTConfig(
        **work.trainer(
            name,
            {
                "max_length": None,
                "per_device_train_batch_size": micro,
                "gradient_accumulation_steps": max(1, settings.sft.batch // (micro * world())),
                "learning_rate": learning_rate,
                "warmup_steps": 0.03,
                "lr_scheduler_type": "cosine",
                "max_steps": steps or -1,
                "num_train_epochs": epochs,
            },
        )
    )
    watch = Watch(stage, work.folder, work.tell, work.stop, models.bytes_of(model))
    trainer = SFTTrainer(
        model=model,
        args=config,
        train_dataset=Dataset.from_list([example.row() for example in used]),
        processing_class=tokenizer,
        callbacks=[watch],
    )
    what = f"fine-tuning on {len(used)} examples of {len({example.task for example in used})} tasks"
    result = finish(work, trainer, folder, start, stage, what, steps)
    work.folder.spent(f"{stage} training", time.monotonic() - clock)
    return result


def finish(work: Work, trainer: Any, folder: Path, start: Start, stage: str, what: str, steps: int) -> Start:
    """Trains to the end and saves the result. Raises StoppedError, and PausedError where memory runs out."""
    found = newest_checkpoint(folder)
    if rank() == 0:
        work.tell(TrainingPhase(stage=stage, what=what, total=max(0, steps), done=found[1]["step"] if found else 0))
    if found is not None:
        trainer.add_callback(SameRandom(trainer, found[0]))
    try:
        trainer.train(resume_from_checkpoint=str(found[0]) if found else None)
    except torch.OutOfMemoryError as error:
        raise out_of_memory(
            error, what, "a micro_batch of 1, gradient checkpointing, LoRA, or shorter answers"
        ) from error
    work.stop.check()
    model = trainer.accelerator.unwrap_model(trainer.model)
    result = models.save(model, trainer.processing_class, folder / "result", start) if rank() == 0 else None
    together()
    del trainer, model
    free_memory()
    return result or result_of(folder, start)


def result_of(folder: Path, start: Start) -> Start:
    saved = folder / "result"
    return Start(start.base, str(saved)) if (saved / "adapter_config.json").exists() else Start(str(saved))


def _tokens(tokenizer: Any, example: Example) -> int:
    row = example.row()
    text = tokenizer.apply_chat_template([*row["prompt"], *row["completion"]], tokenize=False)
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])


def _note(folder: Path, examples: Sequence[Example], used: Sequence[Example]) -> None:
    """What was trained on, to be read by people and to be trained on elsewhere."""
    path = folder / "examples.jsonl"
    if rank() or path.exists():
        return
    kept = set(used)
    for example in examples:
        facts = {"task": example.task, "policy": example.policy, "speedup": example.speedup, "used": example in kept}
        append_line(path, {**facts, **example.row()})
