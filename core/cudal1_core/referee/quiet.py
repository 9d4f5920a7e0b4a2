"""Is the device ours alone? Freezing stops a candidate's processes, but not what they have queued on the GPU.

Two contexts share a GPU by time slices of about 2 ms. So a tiny kernel of ours takes some 15 microseconds on a quiet
device (0.25 ms when another context ran just before), and no less than 1.7 ms where somebody else's kernel runs, be it
of a single thread (measured on an NVIDIA H200).
"""

from __future__ import annotations

import time

import torch

LATE = 0.0006  # seconds
PATIENCE = 0.05  # seconds for what is still running to end
OCCUPIED_CYCLES = 2_000_000


class DeviceBusyError(Exception):
    """Somebody's work keeps running on the device."""


class Canary:
    """Small kernels by which the trusted side sees other work on its device. On the CPU it has nothing to see."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.spark = torch.zeros(1, device=device)
        self.cycles = 0.0 if device == "cpu" else _cycles_per_second(device)
        self.alone = self.quiet(PATIENCE)  # asked before any candidate exists

    def check(self) -> None:
        """Raises DeviceBusyError. Where the device was never ours alone, nothing can be said and nothing is."""
        if self.alone and not self.quiet(PATIENCE):
            raise DeviceBusyError

    def occupy(self, seconds: float) -> None:
        """Queues a kernel of ours that keeps every other context off the device for about so long."""
        torch.cuda._sleep(int(seconds * self.cycles))  # type: ignore[no-untyped-call]

    def quiet(self, patience: float) -> bool:
        """Whether a tiny kernel is done at once, now or within `patience` seconds."""
        if self.device == "cpu":
            return True
        deadline = time.monotonic() + patience
        while True:
            start = time.perf_counter()
            self.spark.add_(1)
            torch.cuda.synchronize()
            if time.perf_counter() - start < LATE:
                return True
            if time.monotonic() > deadline:
                return False


def _cycles_per_second(device: str) -> float:
    """Of the clock that torch.cuda._sleep counts."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    torch.cuda._sleep(1000)  # type: ignore[no-untyped-call]
    start.record()
    torch.cuda._sleep(OCCUPIED_CYCLES)  # type: ignore[no-untyped-call]
    end.record()
    torch.cuda.synchronize()
    return OCCUPIED_CYCLES / (float(start.elapsed_time(end)) / 1e3)
