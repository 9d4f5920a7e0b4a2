"""The folder of one training, and what it takes to go on after a kill.

settings.toml  split.json  tasks.jsonl  state.json  events.jsonl  metrics.jsonl  tensorboard/  log.txt
tasks/         references without a file of their own
model/         the tiny model, or weights converted from GGUF
sft/ self/ rl/ checkpoints, draws and results of each stage
report/        rows of held-out tasks a stage, report.md, report.json
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cudal1_core.errors import Cudal1Error, UsageError

from cudal1_training.settings import Settings, flat, read_settings, to_toml

# What may differ when a training goes on: how much is done and how it is judged, not what it is.
FREE = ("sft.steps", "sft.epochs", "self.steps", "self.epochs", "self.rounds", "rl.steps", "rl.patience", "judge.",
        "report.", "rl.checkpoint_every", "model.device", "rl.micro_batch", "sft.micro_batch",
        "model.gradient_checkpointing")  # fmt: skip

LOG = "log.txt"  # what libraries print; there before anything else


class PausedError(Cudal1Error):
    """Training cannot go on now; nothing is lost, and the same command goes on."""

    exit_status = 3


@dataclass(slots=True)
class State:
    """What is known across processes. `stages` holds the result of each that is done."""

    id: str = ""  # of the training, in the archive
    archive: str = ""  # absolute path
    attempt: int = 0  # processes that worked on this training
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)  # "rl judging" -> wall seconds, over all processes


class TrainingFolder:
    """Opens or makes the folder. Raises UsageError where it holds another training or cannot be made."""

    def __init__(self, path: Path, settings: Settings, *, leader: bool = True) -> None:
        self.path = path.absolute()
        self.settings = settings
        try:
            if leader:
                self._prepare()
        except OSError as error:
            raise UsageError(f"--out {path} cannot be used: {error.strerror}", "The training is kept there.") from error
        self.state = self._read()

    def _prepare(self) -> None:
        if not (self.path / "settings.toml").exists():
            if self.path.exists() and any(file.name != LOG for file in self.path.iterdir()):
                raise UsageError(
                    f"--out {self.path} is not empty and holds no training",
                    "A training is kept in a folder of its own.",
                    "Name another folder.",
                )
            self.path.mkdir(parents=True, exist_ok=True)
        elif (self.path / "split.json").exists():  # before that nothing has begun
            self._compare()
        self._write("settings.toml", to_toml(self.settings, documented=True))

    def _compare(self) -> None:
        before, now = flat(read_settings(self.path / "settings.toml")), flat(self.settings)
        other = [key for key, value in now.items() if before.get(key) != value and not key.startswith(FREE)]
        if other:
            told = "; ".join(f"{key} was {before.get(key)!r}, is {now[key]!r}" for key in other[:4])
            raise UsageError(
                f"{self.path} holds a training with other settings",
                told,
                "Begin a new one with another --out, or give the settings as they were.",
            )

    def _read(self) -> State:
        file = self.path / "state.json"
        return State(**json.loads(file.read_text("utf-8"))) if file.exists() else State()

    def keep(self) -> None:
        """Writes the state down, whole or not at all."""
        self._write("state.json", json.dumps(asdict(self.state), indent=1))

    def spent(self, what: str, seconds: float) -> None:
        self.state.seconds[what] = self.state.seconds.get(what, 0.0) + seconds

    def sub(self, *names: str) -> Path:
        folder = self.path.joinpath(*names)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def need(self, bytes_needed: float, what: str) -> None:
        """Raises PausedError where the disk has no room for it."""
        free = shutil.disk_usage(self.path).free
        if free < bytes_needed:
            raise PausedError(
                f"The disk is nearly full: {what} needs {bytes_needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free",
                f"Everything up to the last checkpoint is kept in {self.path}.",
                "Free some space; the same command goes on from there.",
            )

    def _write(self, name: str, text: str) -> None:
        write_whole(self.path / name, text)


def write_whole(path: Path, text: str) -> None:
    """Readers see the old or the new file, also after a kill in the middle."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text, "utf-8")
    part.replace(path)


def append_line(path: Path, row: dict[str, Any]) -> None:
    with path.open("ab", buffering=0) as file:
        file.write(json.dumps(row).encode() + b"\n")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Whole lines only: the last of a process that was killed may be cut."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text("utf-8", "replace").splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows
