"""What the machine was doing when something was measured: clocks, heat and load. Kept with a receipt.

Of all this a verdict only takes the label `throttled`.

What cannot be known on a machine is left out.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

import psutil

# NVML's bits: power cap, hardware slowdown, thermal slowdown by software and by hardware, power brake
THROTTLED = 0x04 | 0x08 | 0x20 | 0x40 | 0x80


def throttled(*moments: dict[str, Any]) -> bool:
    """Whether the GPU slowed its clock at one of them, for power or heat."""
    return any(int(moment.get("gpu", {}).get("throttle_reasons", 0)) & THROTTLED for moment in moments)


def read(gpu: str | None = None) -> dict[str, Any]:
    """Facts of this moment. `gpu` is a GPU's UUID as NVML writes it ("GPU-…"), None for the processor alone."""
    found: dict[str, Any] = {
        "load": os.getloadavg()[0],  # processes that want to run, over the last minute
        "cores": len(os.sched_getaffinity(0)),
        "free_memory_bytes": psutil.virtual_memory().available,
    }
    with contextlib.suppress(OSError, NotImplementedError, AttributeError):
        found["cpu_mhz"] = round(psutil.cpu_freq().current)
    if gpu is not None:
        found["gpu"] = _gpu(gpu)
    return found


def _gpu(uuid: str) -> dict[str, Any]:
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return {"unknown": str(error)}
    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        return {
            "sm_mhz": pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
            "memory_mhz": pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM),
            "celsius": pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
            "watts": pynvml.nvmlDeviceGetPowerUsage(handle) / 1000,
            "throttle_reasons": pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),  # NVML's bits
        }
    except pynvml.NVMLError as error:
        return {"unknown": str(error)}
    finally:
        pynvml.nvmlShutdown()
