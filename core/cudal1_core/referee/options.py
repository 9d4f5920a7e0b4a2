"""What a person may set about judging."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """The options of `verify`, the same for every candidate of a task."""

    device: str = "auto"  # auto, cpu, cuda, cuda:N
    model: str | None = None  # class name when the file has several modules
    mode: Literal["as-built", "eval", "train"] = "as-built"
    timeout_s: float = 30.0  # one call of forward
    build_timeout_s: float = 120.0  # import and construction
    allow_precision: Literal["tf32", "bf16", "fp16"] | None = None
    allow_output_reuse: bool = False
    expose: tuple[Path, ...] = ()  # extra paths the candidate may read
    timing_budget_s: float = 6.0  # most seconds spent on timing one candidate
    timing: Literal["default", "paper"] = "default"  # paper: all the seconds are spent, see referee.paper
