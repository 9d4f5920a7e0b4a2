"""One turn at a time on a device, over all processes of a user: what is timed must have the device to itself."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import torch

CPU_PATIENCE_S = 15.0  # after that it is timed beside others, and labelled where they were in the way
LOOK_S = 0.02


def quietly(waits: bool) -> None:
    """Hears of a wait and does nothing."""


@contextmanager
def gpu_turn(device: str, on_wait: Callable[[bool], None] = quietly) -> Iterator[None]:
    """Waits until no other referee of this user checks or times on this GPU. No wait on the CPU.

    `on_wait` hears of the wait as it begins (True) and ends (False), where there is one.
    """
    if device == "cpu":
        yield
        return
    with _lock(gpu_uuid(device) or device) as file:
        if not _taken(file):
            on_wait(True)
            fcntl.flock(file, fcntl.LOCK_EX)
            on_wait(False)
        yield


@contextmanager
def cpu_turn(
    device: str, on_wait: Callable[[bool], None] = quietly, patience_s: float = CPU_PATIENCE_S
) -> Iterator[bool]:
    """Waits a while for other referees of this user that time on the processor. Gives whether nobody is left.

    Less than a GPU's turn: checking goes on side by side. No wait on a GPU.
    """
    if device != "cpu":
        yield True
        return
    with _lock("cpu") as file:
        alone = _taken(file)
        if not alone:
            on_wait(True)
            deadline = time.monotonic() + patience_s
            while not alone and time.monotonic() < deadline:
                time.sleep(LOOK_S)
                alone = _taken(file)
            on_wait(False)
        yield alone


def gpu_uuid(device: str) -> str | None:
    """As NVML writes it; None for the processor, and where torch does not know it."""
    if device == "cpu":
        return None
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return f"GPU-{uuid}" if uuid is not None else None


def _lock(identity: str) -> IO[str]:
    name = f"cudal1_turn_{os.getuid()}_{identity.replace('/', '_')}.lock"
    return Path(tempfile.gettempdir(), name).open("w")


def _taken(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
