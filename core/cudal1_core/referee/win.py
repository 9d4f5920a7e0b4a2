"""What really ran in a candidate's call: a claim from inside its process, shown and stored, never decisive."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

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

    def on_call(frame: Any, event: str, argument: Any) -> None:
        if event == "c_call":
            module = getattr(argument, "__module__", None) or type(getattr(argument, "__self__", None)).__module__
            file = getattr(sys.modules.get(module or ""), "__file__", None) or ""
            if file.startswith(private_folder) and file.endswith(".so") and "/inductor/" not in file:
                native.add(module or "?")

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


def _compiled() -> bool:
    dynamo = sys.modules.get("torch._dynamo.utils")
    return bool(dynamo and dynamo.counters["stats"].get("unique_graphs", 0))


def _on_cuda() -> bool:
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]
