"""The devices a bench runs on, from what a person wrote: auto, all, cpu, cuda, cuda:0,cuda:1."""

from __future__ import annotations

import subprocess
import sys

from cudal1_core.errors import UsageError

SECONDS = 120.0  # importing torch on a cold disk


def devices(word: str) -> tuple[str, ...]:
    """Names that the referee takes. Raises UsageError. Only auto and all look at the machine, which takes seconds."""
    if word not in ("auto", "all"):
        names = tuple("cuda:0" if name == "cuda" else name for name in word.split(","))
        if "cpu" in names and len(names) > 1:
            raise UsageError("A bench runs on the CPU or on GPUs, not on both", "Make two, and compare them.")
        return tuple(dict.fromkeys(names))
    count = _count()
    if word == "auto":
        return ("cuda:0",) if count else ("cpu",)
    if not count:
        raise UsageError("--device all: torch sees no GPU here", "", "`cudal1-tui doctor` says why.")
    return tuple(f"cuda:{index}" for index in range(count))


def _count() -> int:
    """GPUs that torch can use, asked in a child."""
    program = "import torch; print(torch.cuda.device_count())"
    try:
        answer = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=SECONDS, check=True
        )
        return int(answer.stdout.split()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return 0
