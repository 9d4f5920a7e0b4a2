"""What every stage is given: settings, folder, archive, referees, tasks, and where to tell what happens."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from cudal1_core.archive import Archive
from cudal1_core.reference import Task

from cudal1_training.book import Book
from cudal1_training.folder import TrainingFolder
from cudal1_training.groups import Groups
from cudal1_training.models import device, frozen_dtype
from cudal1_training.referees import Referees
from cudal1_training.settings import Settings
from cudal1_training.telling import Teller
from cudal1_training.watching import Stop

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Work:
    settings: Settings
    folder: TrainingFolder
    archive: Archive
    referees: Referees
    tell: Teller
    stop: Stop
    tasks: dict[str, Task]  # trained on
    held_out: dict[str, Task]

    def groups(self, stage: str, policy: str, *, kept: bool = True) -> Groups:
        """`kept` in the archive, under a name of this training, process and stage."""
        state = self.folder.state
        name = f"{state.id}-{stage}-{policy}-{state.attempt}.{rank()}"
        book = Book(self.archive, name, policy, str(self.folder.path)) if kept else None
        return Groups(policy, self.tell, book, self.referees)

    def wanted(self, id: str) -> bool:
        """Whether code of that id in the archive may be learned from: all of it, or this training's alone."""
        return "archive" in self.settings.sft.teachers or id.startswith(self.folder.state.id)

    def trainer(self, stage_folder: str, remaining: dict[str, Any]) -> dict[str, Any]:
        """Arguments that all trainers share."""
        settings = self.settings
        on_gpu = device(settings.model) == "cuda"
        half = on_gpu and (settings.model.lora_rank == 0 or str(frozen_dtype(settings.model)) == "torch.bfloat16")
        return {
            "output_dir": str(self.folder.path / stage_folder),
            "use_cpu": not on_gpu,
            "bf16": half,
            "gradient_checkpointing": settings.model.gradient_checkpointing,
            "logging_steps": 1,
            "save_steps": settings.rl.checkpoint_every,
            "save_total_limit": 2,
            "report_to": ["tensorboard"],
            "disable_tqdm": True,
            "seed": settings.seed,
            "dataloader_num_workers": 0,
            "ddp_timeout": 7200,
            **remaining,
        }


def rank() -> int:
    return int(os.environ.get("RANK", "0"))


def world() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def mine(work: Sequence[Item]) -> Sequence[Item]:
    """This process's part of what all processes do together."""
    return work[rank() :: world()]


def together() -> None:
    """Waits for all processes of the training."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()
