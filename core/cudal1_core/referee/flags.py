"""Torch settings that decide speed and precision: read after loading the reference, set before a candidate loads."""

from __future__ import annotations

from typing import Any

import torch


def snapshot() -> dict[str, Any]:
    """JSON-able; names as torch has them."""
    return {
        "num_threads": torch.get_num_threads(),
        "default_dtype": str(torch.get_default_dtype()),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cuda.matmul.allow_tf32": torch.backends.cuda.matmul.allow_tf32,
        "cuda.matmul.allow_fp16_reduced_precision_reduction": _matmul_flag("allow_fp16_reduced_precision_reduction"),
        "cuda.matmul.allow_bf16_reduced_precision_reduction": _matmul_flag("allow_bf16_reduced_precision_reduction"),
        "cudnn.allow_tf32": torch.backends.cudnn.allow_tf32,
        "cudnn.benchmark": torch.backends.cudnn.benchmark,
        "cudnn.deterministic": torch.backends.cudnn.deterministic,
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
    }


def apply(flags: dict[str, Any]) -> None:
    torch.set_num_threads(flags["num_threads"])
    torch.set_default_dtype(getattr(torch, flags["default_dtype"].removeprefix("torch.")))
    torch.set_float32_matmul_precision(flags["float32_matmul_precision"])
    torch.backends.cuda.matmul.allow_tf32 = flags["cuda.matmul.allow_tf32"]
    for name in ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"):
        setattr(torch.backends.cuda.matmul, name, flags[f"cuda.matmul.{name}"])
    torch.backends.cudnn.allow_tf32 = flags["cudnn.allow_tf32"]
    torch.backends.cudnn.benchmark = flags["cudnn.benchmark"]
    torch.backends.cudnn.deterministic = flags["cudnn.deterministic"]
    set_deterministic(flags["deterministic_algorithms"])


def set_deterministic(wanted: bool, warn_only: bool = False) -> None:
    """As torch.use_deterministic_algorithms, without the second that its import of the compiler takes."""
    torch._C._set_deterministic_algorithms(wanted, warn_only=warn_only)


def _matmul_flag(name: str) -> bool:
    value = getattr(torch.backends.cuda.matmul, name)
    return bool(value[0] if isinstance(value, tuple) else value)
