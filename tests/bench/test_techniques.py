"""Techniques are read from what the code does, not from what it says of itself."""

from __future__ import annotations

import pytest
from cudal1_core.bench.techniques import techniques_of

KERNEL = '''
import torch
from torch.utils.cpp_extension import load_inline
source = """
#include <torch/extension.h>
// __launch_bounds__ in a comment
__global__ void f(const float* __restrict__ x, float* y) {
    __shared__ float tile[32];
    #pragma unroll
    for (int i = 0; i < 4; i++) tile[i] = x[i];
    float4 v = reinterpret_cast<const float4*>(x)[0];
    y[0] = __shfl_down_sync(0xffffffff, v.x, 1);
}
"""
module = load_inline(name="f", cpp_sources="", cuda_sources=source, extra_cuda_cflags=["--use_fast_math"])
'''


def test_a_cuda_kernel_is_read_without_its_comments() -> None:
    assert techniques_of(KERNEL) == (
        "CUDA kernel",
        "shared memory",
        "warp primitives",
        "vectorised access",
        "read-only access",
        "loop unrolling",
        "fast math",
    )


@pytest.mark.parametrize(
    ("code", "technique"),
    [
        ("@triton.jit\ndef f(x): pass", "Triton kernel"),
        ("g = torch.cuda.CUDAGraph()", "CUDA graphs"),
        ("with torch.cuda.graph(g): pass", "CUDA graphs"),
        ("s = torch.cuda.Stream()", "streams"),
        ("f = torch.compile(model, mode='max-autotune')", "torch.compile"),
        ("@torch.jit.script\ndef f(x): return x", "TorchScript"),
        ("x = x.to(memory_format=torch.channels_last)", "memory layout"),
        ("x = x.contiguous()", "contiguous memory"),
        ("torch.mul(x, y, out=z)", "reused buffers"),
        ("self.out = torch.empty(3)", "reused buffers"),
        ("x.relu_()", "in-place operations"),
        ("nn.ReLU(inplace=True)", "in-place operations"),
        ("torch.addmm(b, x, w)", "fused library call"),
        ("x = x.half()", "reduced precision"),
        ("with torch.autocast('cuda'): pass", "reduced precision"),
        ("torch.backends.cuda.matmul.allow_tf32 = True", "backend settings"),
    ],
)
def test_each_technique_is_seen_in_python(code: str, technique: str) -> None:
    assert techniques_of(f"import torch\n{code}\n") == (technique,)


@pytest.mark.parametrize(
    "code",
    [
        "# torch.compile, CUDA graphs",
        '"""Uses __shared__ memory; { float4 } and torch.compile."""',
        "def f():\n    'a __global__ void kernel() { int x; } would do'\n    return 1",
        "torch.nn.init.zeros_(w)",
        "class A:\n    def __call__(self): return self.__dict__",
        "label = 'channels_last'",
        "x = 'not { code ; }'",
        "",
        "def broken(:",
    ],
)
def test_talk_about_techniques_is_none(code: str) -> None:
    assert techniques_of(code) == ()
