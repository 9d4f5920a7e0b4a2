"""What really ran in a candidate's call: a claim from inside its process, shown and stored, never decisive."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

_TORCH_SPACES = (
    "aten",
    "prim",
    "prims",
    "torch",
    "autograd",
    "cudnn",
    "c10d",
    "quantized",
    "mkldnn",
    "mkl",
    "inductor",
)

# parts of the names of kernels that torch and its libraries bring
_LIBRARY_KERNELS = (
    "at::", "at_cuda_detail", "cutlass", "cublas", "cudnn", "gemm", "gemv", "sm80_", "sm90_", "sm100_",
    "ampere_", "volta_", "turing_", "nvjet", "splitK", "flash_fwd", "fmha", "pytorch_flash", "Memcpy", "Memset",
    "cub::", "thrust", "dot_kernel", "reduce_1Block", "implicit_convolve", "winograd", "xmma", "cask",
    "nchwToNhwc", "nhwcToNchw", "RNN", "elemWise", "LSTM", "GRU", "persist", "bn_fw", "softmax_warp", "cunn_",
    "vectorized_", "CatArray", "conv2d_grouped",
)  # fmt: skip


def observe(call: Callable[[], Any], private_folder: str) -> dict[str, Any]:
    """Runs `call` once under the profiler: {"win", "authored", "kernels"}; kernel names are cut at 120 characters."""
    native: set[str] = set()
    libraries = _own_libraries(private_folder)

    def on_call(frame: Any, event: str, argument: Any) -> None:
        if event == "c_call":
            module = getattr(argument, "__module__", None) or type(getattr(argument, "__self__", None)).__module__
            if module and module.rpartition(".")[2] in libraries:
                native.add(module)

    activities = [torch.profiler.ProfilerActivity.CPU]
    if _on_cuda():
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    graphs = False
    kernels: set[str] = set()
    with torch.profiler.profile(activities=activities) as profile:
        sys.setprofile(on_call)
        try:
            call()
        finally:
            sys.setprofile(None)
        if _on_cuda():
            torch.cuda.synchronize()
    for event in profile.events() or ():
        if "GraphLaunch" in event.name:
            graphs = True
        space = event.name.partition("::")[0]
        if libraries and "::" in event.name and space.isidentifier() and space not in _TORCH_SPACES:
            native.add(event.name)
        if event.device_type.name == "CUDA":
            kernels.add(event.name)
    generated = {name for name in kernels if name.startswith("triton_")}
    own = {name for name in kernels - generated if not any(word in name for word in _LIBRARY_KERNELS)}
    authored = bool(native or own)
    if graphs:
        win = "graph"
    elif authored:
        win = "kernel"
    elif generated or _compiled():
        win = "compiled"
    else:
        win = "torch_level"
    names = sorted(native | own or kernels)
    return {
        "win": win,
        "authored": authored,
        "kernels": [n[:120] for n in names][:20],
    }


def _own_libraries(folder: str) -> set[str]:
    """Names of the native libraries that the candidate built in its own folder and loaded, without the compiler's."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    paths = {line.partition("/")[2] for line in maps.splitlines() if folder in line}
    return {Path(path).stem for path in paths if path.endswith(".so") and "/inductor/" not in path}


def _compiled() -> bool:
    dynamo = sys.modules.get("torch._dynamo.utils")
    return bool(dynamo and dynamo.counters["stats"].get("unique_graphs", 0))


def _on_cuda() -> bool:
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]
