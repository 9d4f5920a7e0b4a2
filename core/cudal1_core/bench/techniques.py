"""Techniques that a candidate uses, read from its source: Python by its syntax tree, kernels in it by their text.

Each is what is written there; whether it ran, and whether it gained anything, the source does not say. What ran is the
verdict's `win`, what was gained its speedup. The names follow CUDA-L1's section on techniques where it has one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from cudal1_core.syntax import dotted, last_name, native_texts, parse

TECHNIQUES = (
    "CUDA kernel",
    "Triton kernel",
    "C++ extension",
    "shared memory",
    "warp primitives",
    "vectorised access",
    "read-only access",
    "loop unrolling",
    "thread block bounds",
    "fast math",
    "CUDA graphs",
    "streams",
    "torch.compile",
    "TorchScript",
    "memory layout",
    "contiguous memory",
    "reused buffers",
    "in-place operations",
    "fused library call",
    "reduced precision",
    "backend settings",
)

_NATIVE = {
    "shared memory": r"__shared__",
    "warp primitives": r"__shfl|__ballot|__(?:any|all|reduce_\w+)_sync|cooperative_groups",
    "vectorised access": r"\b(?:float|half|double|int|uint)[248]\b",
    "read-only access": r"__ldg\s*\(|__restrict__",
    "loop unrolling": r"#pragma\s+unroll|tl\.static_range",
    "thread block bounds": r"__launch_bounds__|triton\.autotune|num_warps\s*=",
    "fast math": r"use_fast_math|\b__(?:exp|log|pow|sin|cos|tan|fdivide|frcp|fsqrt)\w*f\b|rsqrtf",
    "streams": r"cudaStreamCreate|getStreamFromPool",
}  # fmt: skip
_NATIVE_RES = {name: re.compile(pattern) for name, pattern in _NATIVE.items()}
_KERNEL = re.compile(r"__global__\s")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_FUSED = {
    "addmm", "baddbmm", "addbmm", "addmv", "addcmul", "addcdiv", "scaled_dot_product_attention", "native_layer_norm",
    "_addmm_activation", "native_group_norm", "native_batch_norm", "linear_relu", "cudnn_convolution_relu",
    "cudnn_convolution_add_relu", "rms_norm", "_foreach_add", "fused_dropout",
}  # fmt: skip
_BUFFER_MAKERS = {"empty", "empty_like", "zeros", "zeros_like", "empty_strided", "new_empty"}
_HALVES = {"float16", "half", "bfloat16"}


def techniques_of(source: str) -> tuple[str, ...]:
    """In the order of TECHNIQUES; empty for what is not Python."""
    tree = parse(source)
    if tree is None:
        return ()
    found: set[str] = set()
    code = _code_of(tree)
    for text in _texts(tree):
        found |= _in_native(text)
    for node in ast.walk(tree):
        for rule in _RULES:
            if name := rule(node):
                found.add(name)
    if "Triton kernel" in found:
        found |= {name for name, pattern in _NATIVE_RES.items() if pattern.search(code)}
    return tuple(name for name in TECHNIQUES if name in found)


def _code_of(tree: ast.Module) -> str:
    """The Python without comments and docstrings, which only talk about techniques."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _texts(tree: ast.Module) -> Iterator[str]:
    """String constants that hold C++ or CUDA."""
    for text in native_texts(tree):
        yield _COMMENT.sub("", str(text.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in ("--use_fast_math", "-use_fast_math"):
            yield node.value


def _in_native(text: str) -> set[str]:
    found = {name for name, pattern in _NATIVE_RES.items() if pattern.search(text)}
    if _KERNEL.search(text):
        found.add("CUDA kernel")
    elif "torch/extension.h" in text or "at::Tensor" in text or "torch::Tensor" in text:
        found.add("C++ extension")
    elif found != {"fast math"}:
        return set()
    return found


def _decorated(node: ast.AST) -> str:
    if not isinstance(node, ast.FunctionDef):
        return ""
    for decorator in node.decorator_list:
        name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if name == "triton.jit":
            return "Triton kernel"
        if name in ("torch.compile", "torch._dynamo.optimize"):
            return "torch.compile"
        if name in ("torch.jit.script", "jit.script"):
            return "TorchScript"
    return ""


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    name, last = dotted(node.func), last_name(node.func)
    if last in ("CUDAGraph", "make_graphed_callables") or name == "torch.cuda.graph":
        return "CUDA graphs"
    if last == "Stream" and "cuda" in name:
        return "streams"
    if name in ("torch.compile", "torch._dynamo.optimize"):
        return "torch.compile"
    if name in ("torch.jit.script", "torch.jit.trace", "jit.script"):
        return "TorchScript"
    if last == "contiguous":
        return "contiguous memory"
    if last in _FUSED:
        return "fused library call"
    return ""


def _in_place(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    if any(keyword.arg == "out" for keyword in node.keywords):
        return "reused buffers"
    truthy = any(
        keyword.arg == "inplace" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
        for keyword in node.keywords
    )
    last = last_name(node.func)
    changes = isinstance(node.func, ast.Attribute) and last.endswith("_") and not last.endswith("__")
    initial = isinstance(node.func, ast.Attribute) and dotted(node.func.value).endswith("init")
    return "in-place operations" if truthy or (changes and not initial and last != "requires_grad_") else ""


def _buffer(node: ast.AST) -> str:
    """`self.x = torch.empty(...)`: memory that outlives the call."""
    if (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and last_name(node.value.func) in _BUFFER_MAKERS
    ):
        for target in node.targets:
            if isinstance(target, ast.Attribute) and dotted(target).startswith("self."):
                return "reused buffers"
    return ""


def _layout(node: ast.AST) -> str:
    return (
        "memory layout"
        if isinstance(node, ast.Attribute) and node.attr in ("channels_last", "channels_last_3d")
        else ""
    )


def _precision(node: ast.AST) -> str:
    if isinstance(node, ast.Call) and last_name(node.func) in ("half", "bfloat16", "autocast"):
        return "reduced precision"
    if isinstance(node, ast.Attribute) and node.attr in _HALVES and dotted(node).startswith("torch."):
        return "reduced precision"
    return ""


def _settings(node: ast.AST) -> str:
    """`torch.backends.… = …`, `torch.set_float32_matmul_precision(…)`."""
    if isinstance(node, ast.Assign):
        return "backend settings" if any(dotted(t).startswith("torch.backends.") for t in node.targets) else ""
    if isinstance(node, ast.Call) and last_name(node.func) in ("set_float32_matmul_precision", "set_num_threads"):
        return "backend settings"
    return ""


_RULES: tuple[Callable[[ast.AST], str], ...] = (
    _decorated, _called, _in_place, _buffer, _layout, _precision, _settings,
)  # fmt: skip
