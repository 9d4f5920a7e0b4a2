"""What a trainer tells while it works: metrics, progress with the time left, and checkpoints that are whole."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cudal1_core.events import Event, TrainingSaved, TrainingStepped
from transformers import TrainerCallback

from cudal1_training.folder import TrainingFolder, append_line, write_whole

MARK = "whole.json"  # in a checkpoint that was written to its end


class Stop:
    """Set by a signal; looked at between steps, where everything can be kept."""

    def __init__(self) -> None:
        self.number = 0

    def check(self) -> None:
        """Raises StoppedError."""
        if self.number:
            raise StoppedError


class StoppedError(Exception):
    """The person ended the training; it can go on."""


class Watch(TrainerCallback):
    """`remember` gives what else a checkpoint needs; `checkpoint_bytes` is about its size."""

    def __init__(
        self,
        stage: str,
        folder: TrainingFolder,
        tell: Callable[[Event], None],
        stop: Stop,
        checkpoint_bytes: int,
        remember: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        self._stage = stage
        self._folder = folder
        self._tell = tell
        self._stop = stop
        self._bytes = checkpoint_bytes
        self._remember = remember
        self._start = 0.0
        self._first = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._start, self._first = time.monotonic(), state.global_step

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._stop.number:
            control.should_save = True
            control.should_training_stop = True
        if state.global_step % args.save_steps == 0:
            self._folder.need(self._bytes, "the next checkpoint")

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if not state.is_world_process_zero or not logs or "loss" not in logs:
            return
        metrics = {name: float(value) for name, value in logs.items() if isinstance(value, int | float)}
        append_line(
            self._folder.path / "metrics.jsonl",
            {"stage": self._stage, "step": state.global_step, "at": time.time(), **metrics},
        )
        done = state.global_step - self._first
        left = (time.monotonic() - self._start) / done * (state.max_steps - state.global_step) if done else None
        self._tell(
            TrainingStepped(
                stage=self._stage, step=state.global_step, total=state.max_steps, metrics=metrics, left_s=left
            )
        )

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if not state.is_world_process_zero:
            return
        checkpoint = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        write_whole(checkpoint / MARK, json.dumps({"step": state.global_step, **self._remember()}))
        self._folder.keep()
        self._tell(TrainingSaved(stage=self._stage, step=state.global_step, path=str(checkpoint)))


class SameRandom(TrainerCallback):
    """The first step after a checkpoint draws what it would have drawn.

    The trainer restores the generators too, but then makes a data loader, which draws from them.
    """

    def __init__(self, trainer: Any, checkpoint: Path) -> None:
        self._trainer = trainer
        self._checkpoint: Path | None = checkpoint

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._checkpoint is not None:
            self._trainer._load_rng_state(str(self._checkpoint))
            self._checkpoint = None


def newest_checkpoint(folder: Path) -> tuple[Path, dict[str, Any]] | None:
    """The last checkpoint that is whole, with what it remembers."""
    found = []
    for mark in folder.glob(f"checkpoint-*/{MARK}"):
        data = json.loads(mark.read_text("utf-8"))
        found.append((data["step"], mark.parent, data))
    if not found:
        return None
    _, path, data = max(found, key=lambda one: one[0])
    return path, data
