"""What was trained here: a line a model in `.cudal1/models.jsonl`, with what it was made from and how it did."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cudal1_core.paths import home

FILE = "models.jsonl"


@dataclass(frozen=True, slots=True)
class Trained:
    stage: str  # sft, self, rl
    training: str  # folder of the training, with settings, split and report
    base: str  # folder or hub id of the weights
    adapter: str | None  # folder of the LoRA adapter; None where all weights were trained and lie in `base`
    model: str  # what was trained, as the person named it
    tasks: int
    held_out: int
    report: dict[str, Any] = field(default_factory=dict)  # figures on held-out tasks; empty where there were none
    at: float = field(default_factory=time.time)

    @property
    def place(self) -> str:
        return self.adapter or self.base

    @property
    def there(self) -> bool:
        return Path(self.place).is_dir()

    @property
    def options(self) -> str:
        """The words of the command line that use it."""
        adapter = f" --adapter {self.adapter}" if self.adapter else ""
        return f"--policy transformers --model {self.base}{adapter}"


def register(model: Trained, working_directory: Path | None = None) -> None:
    """Adds it to the list. Raises OSError."""
    base = home(working_directory)
    base.mkdir(parents=True, exist_ok=True)
    with (base / FILE).open("ab", buffering=0) as file:
        file.write(json.dumps(asdict(model)).encode() + b"\n")


def trained_models(working_directory: Path | None = None) -> list[Trained]:
    """Oldest first; of one place the newest line counts. Lines that are cut or of another version are passed over."""
    path = home(working_directory) / FILE
    found: dict[str, Trained] = {}
    for line in path.read_text("utf-8", "replace").splitlines() if path.is_file() else ():
        try:
            model = Trained(**json.loads(line))
        except (ValueError, TypeError):
            continue
        found.pop(model.place, None)
        found[model.place] = model
    return list(found.values())
