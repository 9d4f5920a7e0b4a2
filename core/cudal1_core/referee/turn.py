"""One GPU turn at a time on a GPU, over all processes of a user: what is timed must have the device to itself."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch


@contextmanager
def gpu_turn(device: str) -> Iterator[None]:
    """Waits until no other referee of this user checks or times on this GPU. No wait on the CPU."""
    if device == "cpu":
        yield
        return
    identity = (gpu_uuid(device) or device).replace("/", "_")
    path = Path(tempfile.gettempdir(), f"cudal1_turn_{os.getuid()}_{identity}.lock")
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def gpu_uuid(device: str) -> str | None:
    """As NVML writes it; None for the processor, and where torch does not know it."""
    if device == "cpu":
        return None
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return f"GPU-{uuid}" if uuid is not None else None
