"""What the GPU, or else the processor, is doing: read in a thread of its own, so that no frame waits for a driver."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cudal1_core.events import MachineSampled

EVERY_S = 2.0
_GB = 1e9


class Watch:
    """Calls `tell` from its thread with each sample, until it is stopped; a slow driver delays nobody else."""

    def __init__(self, tell: Callable[[MachineSampled], None], gpu: int | None) -> None:
        """`gpu` is the index that CUDA knows it by, None to tell of the processor."""
        self._tell = tell
        self._gpu = gpu
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._work, name="machine", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Does not wait: the thread is a daemon, and a driver may hang in it."""
        self._done.set()

    def _work(self) -> None:
        read = gpu_reader(self._gpu) if self._gpu is not None else None
        while not self._done.is_set():
            sample = read() if read is not None else None
            sample = sample or processor()
            if not self._done.is_set():
                self._tell(sample)
            self._done.wait(EVERY_S)


def processor() -> MachineSampled:
    """Use of all cores together over half a second, which this takes, and memory."""
    import psutil
    from cudal1_core.events import MachineSampled

    memory = psutil.virtual_memory()
    return MachineSampled(
        use=psutil.cpu_percent(interval=0.5),
        used_gb=(memory.total - memory.available) / _GB,
        total_gb=memory.total / _GB,
    )


def gpu_reader(index: int) -> Callable[[], MachineSampled | None] | None:
    """A function that samples the GPU, or None where NVML or that GPU is not there."""
    import pynvml
    from cudal1_core.events import MachineSampled

    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(physical(index))
        name = pynvml.nvmlDeviceGetName(handle)
    except (pynvml.NVMLError, ValueError):
        return None

    def read() -> MachineSampled | None:
        try:
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
            pids = [process.pid for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)]
            return MachineSampled(
                gpu=str(name),
                use=float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu),
                used_gb=memory.used / _GB,
                total_gb=memory.total / _GB,
                celsius=int(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
                foreign=foreign(pids),
            )
        except pynvml.NVMLError:
            return None

    return read


def physical(index: int) -> int:
    """The index that the driver knows a GPU by. Raises ValueError where CUDA_VISIBLE_DEVICES names it otherwise."""
    import os

    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if not visible:
        return index
    names = visible.split(",")
    if index >= len(names):
        raise ValueError(f"CUDA_VISIBLE_DEVICES={visible} hides GPU {index}")
    return int(names[index])


def foreign(pids: list[int]) -> int:
    """How many are neither ours nor our children's; those of other containers cannot be told apart and do not count."""
    import os

    import psutil

    us = psutil.Process(os.getpid())
    own = {us.pid, *(child.pid for child in us.children(recursive=True))}
    return sum(pid not in own and psutil.pid_exists(pid) for pid in pids)
