"""What candidates may be written with, and what this machine and its device can do. Imports no torch."""

from __future__ import annotations

import importlib.util
import platform
import shutil
from pathlib import Path

import psutil

from cudal1_core.reference import Task

TOOLKITS = {
    "torch": "plain PyTorch",
    "compile": "torch.compile",
    "triton": "Triton kernels",
    "cuda": "CUDA or C++ through torch.utils.cpp_extension.load_inline",
    "nvrtc": "CUDA compiled by NVRTC through cuda-bindings",
    "cpp": "C++ through torch.utils.cpp_extension.load_inline",
}


def available(device: str) -> tuple[str, ...]:
    """The toolkits that work here for this device."""
    compiler = any(shutil.which(name) for name in ("c++", "g++", "clang++")) and shutil.which("ninja") is not None
    found = ["torch", "compile"]
    if not device.startswith("cuda"):
        return (*found, *(["cpp"] if compiler else []))
    if importlib.util.find_spec("triton"):
        found.append("triton")
    if compiler and shutil.which("nvcc"):
        found.append("cuda")
    if importlib.util.find_spec("cuda"):
        found.append("nvrtc")
    return tuple(found)


def device_facts(task: Task) -> str:
    """One line of what the device is; empty where nothing is known."""
    return _gpu(task.device_name) if task.device.startswith("cuda") else _processor()


def _gpu(name: str) -> str:
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ""
    try:
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            if pynvml.nvmlDeviceGetName(handle) != name:  # equal names have equal facts
                continue
            major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle).total / 2**30
            width = pynvml.nvmlDeviceGetMemoryBusWidth(handle)  # bits
            clock = pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_MEM)  # MHz, two transfers a tick
            bandwidth = 2 * clock * width / 8 / 1000
            return f"compute capability {major}.{minor}, {memory:.0f} GiB memory at {bandwidth:.0f} GB/s"
    except pynvml.NVMLError:
        pass
    finally:
        pynvml.nvmlShutdown()
    return ""


def _processor() -> str:
    facts = [f"{psutil.cpu_count(logical=False) or psutil.cpu_count() or 1} cores", platform.machine()]
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    facts += [word for word, flag in (("AVX2", "avx2"), ("AVX-512", "avx512f"), ("AMX", "amx_tile")) if flag in flags]
    return ", ".join(facts)
