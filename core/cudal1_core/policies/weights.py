"""Which model a local policy runs, and how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Weights:
    model: str  # a folder, a GGUF file or a hub id
    adapter: Path | None = None  # a folder with a LoRA adapter
    takes_adapters: bool = False  # room for adapters that come later, where a server must know at its start
    device: str = "auto"
    dtype: str = "auto"  # float32 on the CPU, bfloat16 on a GPU
    longest: int = 2048  # tokens of an answer
    temperature: float = 0.8
    top_p: float = 0.95
