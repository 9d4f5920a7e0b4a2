"""One turn at a time on a device, over all processes of a user: what is timed must have the device to itself."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import torch


@contextmanager
def turn(device: str, on_wait: Callable[[bool], None] = lambda waits: None) -> Iterator[None]:
    """Waits until no other referee of this user checks or times on this device, a GPU or the processor.

    `on_wait` hears of the wait as it begins (True) and ends (False), where there is one.
    """
    identity = (gpu_uuid(device) or device).replace("/", "_")
    path = Path(tempfile.gettempdir(), f"cudal1_turn_{os.getuid()}_{identity}.lock")
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait(True)
            fcntl.flock(file, fcntl.LOCK_EX)
            on_wait(False)
        yield


def gpu_turn(device: str) -> AbstractContextManager[None]:
    """The same for work that gets in the way of timing on a GPU only; no wait on the CPU."""
    return nullcontext() if device == "cpu" else turn(device)


def gpu_uuid(device: str) -> str | None:
    """As NVML writes it; None for the processor, and where torch does not know it."""
    if device == "cpu":
        return None
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return f"GPU-{uuid}" if uuid is not None else None
