"""From verdicts to rewards: the speedup against the running mean and deviation of its task, cut at 1.5.

CUDA-L1 (arXiv 2507.14111), section 3: r' = clip((r - mu) / sigma, -k, k), k = 1.5. What the referee could not settle
is None, which GRPO leaves out; it is never 0, which would say that the code was wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cudal1_core.reward import smooth

from cudal1_training.settings import RlSettings


@dataclass(slots=True)
class Running:
    """Mean and deviation of all rewards of a task so far (Welford)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0  # sum of squared distances from the mean

    def add(self, value: float) -> None:
        self.count += 1
        step = value - self.mean
        self.mean += step / self.count
        self.squares += step * (value - self.mean)

    @property
    def deviation(self) -> float:
        return math.sqrt(self.squares / self.count) if self.count else 0.0


class Rewards:
    """Every process of a training holds the same statistics, since all are given all rewards in the same order."""

    def __init__(self, settings: RlSettings) -> None:
        self._settings = settings
        self.tasks: dict[str, Running] = {}
        self.flat = 0  # groups in a row without any difference

    def smoothed(self, rows: Sequence[tuple[str, float | None]]) -> list[float | None]:
        """What the trainer sees of raw rewards, each with its task; they count in the statistics first."""
        for task, raw in rows:
            if raw is not None:
                self.tasks.setdefault(task, Running()).add(raw)
        if not self._settings.smoothing:
            return [raw for _, raw in rows]
        return [
            None if raw is None else smooth(raw, self.tasks[task].mean, self.tasks[task].deviation, self._settings.clip)
            for task, raw in rows
        ]

    def watch(self, groups: Sequence[Sequence[float | None]]) -> int:
        """How many groups in a row have had the same reward throughout, after these."""
        for group in groups:
            self.flat = self.flat + 1 if len({raw for raw in group if raw is not None}) < 2 else 0
        return self.flat

    def to_json(self) -> dict[str, Any]:
        return {"tasks": {task: asdict(running) for task, running in self.tasks.items()}, "flat": self.flat}

    def restore(self, data: dict[str, Any]) -> None:
        self.tasks = {task: Running(**running) for task, running in data["tasks"].items()}
        self.flat = data["flat"]
