"""An update of the policy between two rounds: one step of contrastive GRPO on this task, in a child of its own.

The step is `cudal1-tui train rl` with one task and one step: it reads the archive, so that its prompts show what has
been judged so far, samples a group of its own, has it judged, and learns from it. What comes of it is a LoRA adapter.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cudal1_core.errors import PolicyError, UsageError
from cudal1_core.events import TrainingPhase, TroubleMet, from_json
from cudal1_core.policies import children

SECONDS_TO_END = 2.0
RESULT = Path("rl", "result")  # in the folder of a training: the adapter


@dataclass(frozen=True, slots=True)
class Updates:
    """What every step of a run has in common."""

    reference: Path
    model: str  # folder or hub id
    folder: Path  # of the run; steps lie below it
    archive: Path
    adapter: Path | None = None  # that the run began with
    group: int = 4  # answers whose rewards are compared
    longest: int = 2048  # tokens of an answer
    policy_device: str = "auto"
    device: str = "auto"  # of the judge
    command: tuple[str, ...] = (sys.executable, "-m", "cudal1_training")

    def words(self, place: Path, adapter: Path | None) -> list[str]:
        settings = {
            "model.name": self.model,
            "model.adapter": str(adapter or ""),
            "model.device": self.policy_device.partition(":")[0],
            "archive": str(self.archive.absolute()),
            "tasks.path": str(self.reference.absolute()),
            "tasks.held_out": 0,
            "tasks.weak": "true",
            "judge.device": self.device,
            "report.samples": 0,
            "rl.steps": 1,
            "rl.patience": 0,
            "rl.group": max(2, self.group),
            "rl.longest": self.longest,
        }
        changes = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        return ["rl", "--out", str(place), *changes]


class Updater:
    """Each step begins where the last one ended."""

    def __init__(self, updates: Updates) -> None:
        self._updates = updates
        self._adapter = updates.adapter

    async def step(self, tell: Callable[[str], None]) -> Path:
        """The new adapter; `tell` hears what is being done. Raises PolicyError, and ends the child when cancelled."""
        steps = self._updates.folder / "updates"
        steps.mkdir(exist_ok=True)
        place = steps / str(1 + sum(1 for _ in steps.iterdir()))
        place.mkdir()
        with children.words_to(place / "log.txt") as log:
            child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "cudal1_core.policies.guard",
                *self._updates.command,
                *self._updates.words(place, self._adapter),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                limit=1 << 24,
            )
        try:
            trouble = await _listen(child, tell)
            status = await child.wait()
        finally:
            await children.end(child, SECONDS_TO_END)
        found = place / RESULT
        if status != 0 or not (found / "adapter_config.json").is_file():
            meaning = f"{trouble.title}. {trouble.meaning}" if trouble else f"Its process ended with status {status}."
            raise PolicyError(
                "The model could not be updated", meaning, f"The run goes on with it as it is. See {place / 'log.txt'}."
            )
        self._adapter = found
        return found


async def _listen(child: asyncio.subprocess.Process, tell: Callable[[str], None]) -> TroubleMet | None:
    """Tells each phase; the last trouble that was met."""
    assert child.stdout is not None
    trouble = None
    async for line in child.stdout:
        try:
            event = from_json(line.decode("utf-8", "replace"))
        except (ValueError, TypeError, KeyError):
            continue
        if isinstance(event, TrainingPhase):
            tell(f"updating the model: {event.what}")
        elif isinstance(event, TroubleMet):
            trouble = event
    return trouble


def check_installed(missing: Sequence[str] = ("trl", "peft", "datasets")) -> None:
    """Raises UsageError where the training's libraries are not there."""
    absent = [name for name in missing if importlib.util.find_spec(name) is None]
    if absent:
        raise UsageError(f"Training needs {', '.join(absent)}", "", "pip install 'cudal1-tui[train]'")
