"""What a device can do at most: bytes a second by size of the working set, and operations a second by dtype.

Measured with torch's own copies, sums and products, so a peak is what was ever seen here rather than what a data sheet
says. The first few occasions measure anew and the largest figure of all stays: whatever else runs meanwhile makes a
machine look slower, never faster.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import torch
from platformdirs import user_cache_path

OCCASIONS = 5  # after so many the figures are believed
REPEATS = 5  # of each measurement; the quickest counts
LEAST_SECONDS = 0.002  # of one measurement
SIZES = {"cpu": tuple(1 << power for power in range(16, 29, 2)), "cuda": tuple(1 << power for power in range(20, 32))}
WIDTHS = {"cpu": 1024, "cuda": 8192}  # of the square matrices that are multiplied


@dataclass
class Peaks:
    bandwidth: dict[int, float] = field(default_factory=dict)  # bytes of the working set -> bytes a second
    rate: dict[str, float] = field(default_factory=dict)  # dtype -> operations a second, a product and a sum being two
    occasions: dict[str, int] = field(default_factory=dict)  # "bandwidth" or dtype -> times measured

    def bytes_a_second(self, nbytes: float) -> float:
        """The most that moving so many bytes was ever seen at. Smaller sets are no slower than larger ones: where they
        were seen so, starting the work took its time."""
        below = max((size for size in self.bandwidth if size <= nbytes), default=min(self.bandwidth))
        return max(speed for size, speed in self.bandwidth.items() if size >= below)

    def measure(self, device: str, dtypes: list[torch.dtype], *, again: bool = False) -> None:
        """Measures what has not been measured often enough, or everything once more."""
        if again or self.occasions.get("bandwidth", 0) < OCCASIONS:
            self.occasions["bandwidth"] = self.occasions.get("bandwidth", 0) + 1
            for size, speed in _bandwidths(device).items():
                self.bandwidth[size] = max(speed, self.bandwidth.get(size, 0.0))
        for dtype in dtypes:
            name = str(dtype).removeprefix("torch.")
            if again or self.occasions.get(name, 0) < OCCASIONS:
                self.occasions[name] = self.occasions.get(name, 0) + 1
                self.rate[name] = max(_rate(device, dtype), self.rate.get(name, 0.0))


def load(device: str) -> Peaks:
    """As kept on this machine for this device and torch; empty at first."""
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError, KeyError):
        kept = json.loads(_file(device).read_text("utf-8"))[_key(device)]
        sizes = {int(size): float(speed) for size, speed in kept["bandwidth"].items()}
        return Peaks(sizes, dict(kept["rate"]), dict(kept["occasions"]))
    return Peaks()


def save(device: str, peaks: Peaks) -> None:
    """Keeps them for later processes, where that can be done."""
    path = _file(device)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(f".{os.getpid()}")
        facts = {"bandwidth": peaks.bandwidth, "rate": peaks.rate, "occasions": peaks.occasions}
        beside.write_text(json.dumps({_key(device): facts}), "utf-8")
        beside.replace(path)


def _file(device: str) -> Path:
    return user_cache_path("cudal1-tui") / f"peaks-{torch.device(device).type}.json"


def _key(device: str) -> str:
    if device == "cpu":
        return f"{psutil.cpu_count()} cores, {torch.get_num_threads()} threads, torch {torch.__version__}"
    settings = f"tf32 {torch.backends.cuda.matmul.allow_tf32}"
    return f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}, {settings}"


def _bandwidths(device: str) -> dict[int, float]:
    found: dict[int, float] = {}
    for size in SIZES[torch.device(device).type]:
        if size > _free(device) // 4:
            break
        data = torch.ones(size // 4, device=device)
        half = len(data) // 2
        source, target = data[:half], data[half : 2 * half]
        ways: list[Callable[[], object]] = [
            lambda target=target, source=source: target.copy_(source),  # type: ignore[misc]
            lambda data=data: data.sum(),  # type: ignore[misc]
            lambda data=data: data.fill_(1.0),  # type: ignore[misc]
        ]
        found[size] = max(size / _seconds(device, way) for way in ways)
    return found


def _rate(device: str, dtype: torch.dtype) -> float:
    width = WIDTHS[torch.device(device).type]
    one, other = (torch.ones(width, width, device=device).to(dtype) for _ in range(2))
    return 2 * width**3 / _seconds(device, lambda: one @ other)


def _free(device: str) -> int:
    if device == "cpu":
        return int(psutil.virtual_memory().available)
    return int(torch.cuda.mem_get_info(device)[0])


def _seconds(device: str, work: Callable[[], object]) -> float:
    """Of one call, the quickest of several rounds of many."""

    def timed(calls: int) -> float:
        start = time.perf_counter()
        for _ in range(calls):
            work()
        if device != "cpu":
            torch.cuda.synchronize(device)
        return (time.perf_counter() - start) / calls

    timed(1)
    calls = max(1, round(LEAST_SECONDS / max(timed(1), 1e-7)))
    return min(timed(calls) for _ in range(REPEATS))
