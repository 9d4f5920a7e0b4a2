"""Hand-written layer norm and RMS norm become the library's single pass."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import fx

from cudal1_core.playbook.graphs import (
    Editor,
    argument,
    dims,
    either_way,
    is_float32,
    is_op,
    number,
    operands,
    shape,
)
from cudal1_core.playbook.rules import Rule
from cudal1_core.playbook.technique import Finding


def _mean(node: Any) -> tuple[Any, tuple[int, ...]] | None:
    """(source, trailing dimensions) of a mean that keeps its dimensions."""
    if not is_op(node, "mean") or not argument(node, 2, "keepdim", False) or argument(node, 3, "dtype") is not None:
        return None
    source = argument(node, 0, "input")
    return _trailing(source, argument(node, 1, "dim"))


def _trailing(source: Any, dim: Any) -> tuple[Any, tuple[int, ...]] | None:
    if not is_float32(source) or dim is None:
        return None
    rank = len(shape(source))
    found = dims(dim, rank)
    if not found or found != tuple(range(rank - len(found), rank)):
        return None
    return source, found


def _square(node: Any) -> Any:
    """x of x * x, x ** 2 or square(x)."""
    if is_op(node, "square"):
        return node.args[0]
    pair = operands(node) if is_op(node, "mul", "pow") else None
    if pair is None:
        return None
    if is_op(node, "pow"):
        return pair[0] if number(pair[1]) == 2 else None
    return pair[0] if pair[0] is pair[1] else None


def _inverse_root(node: Any) -> tuple[Any, Any, float] | None:
    """(numerator, variance, eps) of n / sqrt(v + eps), n * rsqrt(v + eps) and their other spellings."""
    if is_op(node, "div"):
        pair = operands(node)
        inside = _root(pair[1], 0.5, "sqrt") if pair else None
        return (pair[0], *inside) if pair and inside else None
    for left, right in either_way(node, "mul"):
        inside = _root(right, -0.5, "rsqrt")
        if inside is not None:
            return (left, *inside)
    return None


def _root(node: Any, power: float, name: str) -> tuple[Any, float] | None:
    if is_op(node, name):
        inner = argument(node, 0, "input")
    else:
        pair = operands(node) if is_op(node, "pow") else None
        if pair is None or number(pair[1]) != power:
            return None
        inner = pair[0]
    for left, right in either_way(inner, "add"):
        eps = number(right)
        if eps is not None and eps >= 0 and isinstance(left, fx.Node):
            return left, float(eps)
    return None


def _variance(node: Any, source: Any, mean: Any) -> tuple[int, ...] | None:
    """Dimensions of the population variance of `source`, whose mean node is `mean`."""
    if is_op(node, "var"):
        biased = node.kwargs.get("correction") == 0 or argument(node, 2, "unbiased") is False
        if argument(node, 0, "input") is not source or not biased:
            return None
        keep = argument(node, 3, "keepdim", False)
        found = _trailing(source, argument(node, 1, "dim")) if keep else None
        return found[1] if found else None
    averaged = _mean(node)
    centred = _square(averaged[0]) if averaged else None
    pair = operands(centred) if centred is not None and is_op(centred, "sub") else None
    if averaged is None or pair is None or pair[0] is not source or not _same_mean(pair[1], mean):
        return None
    return averaged[1]


def _same_mean(one: Any, other: Any) -> bool:
    if one is other:
        return True
    first, second = _mean(one), _mean(other)
    return first is not None and first == second


Core = tuple[str, fx.Node, tuple[int, ...], float]


def _core(node: Any) -> Core | None:
    """(kind, x, dimensions, eps) of a bare normalisation."""
    found = _inverse_root(node)
    return _classified(*found) if found else None


def _classified(top: Any, variance: Any, eps: float) -> Core | None:
    averaged = _mean(variance)
    if averaged is not None and is_float32(top) and _square(averaged[0]) is top:
        return "rms", top, averaged[1], eps
    pair = operands(top) if is_op(top, "sub") else None
    mean = _mean(pair[1]) if pair else None
    if pair is None or mean is None or mean[0] is not pair[0]:
        return None
    dimensions = _variance(variance, pair[0], pair[1])
    return ("layer", pair[0], dimensions, eps) if dimensions == mean[1] else None


def _affine(node: Any) -> tuple[Core, Any, Any] | None:
    """(core, gamma, beta) of core * gamma + beta, core * gamma, or core."""
    for left, right in either_way(node, "add"):
        inner = _affine(left) if _weight(right) else None
        if inner is not None and inner[2] is None:
            return inner[0], inner[1], right
    for left, right in either_way(node, "mul"):
        core = _core(left) if _weight(right) else None
        if core is not None:
            return core, right, None
    bare = _core(node)
    if bare is not None:
        return bare, None, None
    found = _inverse_root(node)  # gamma * (x - mean) * rsqrt(...)
    for left, right in either_way(found[0], "mul") if found else ():
        core = _classified(left, *found[1:]) if found and _weight(right) else None
        if core is not None:
            return core, right, None
    return None


def _weight(node: Any) -> bool:
    return isinstance(node, fx.Node) and node.op == "get_attr"


def change(node: fx.Node, edit: Editor) -> fx.Node | None:
    if not is_op(node, "add", "mul", "div") or not is_float32(node):
        return None
    found = _affine(node)
    if found is None:
        return None
    kind, source, dimensions, eps = found[0]
    sizes = shape(source)[-len(dimensions) :]
    if shape(node) != shape(source) or any(w is not None and shape(w) != sizes for w in found[1:]):
        return None
    if kind == "rms" and found[2] is not None:
        return None
    last = range(-len(dimensions), 0)
    normal = tuple(edit.call(torch.Tensor.size, source, d) for d in last)
    if kind == "rms":
        return edit.call(F.rms_norm, source, normal, found[1], eps)
    return edit.call(F.layer_norm, source, normal, found[1], found[2], eps)


RULE = Rule(
    change,
    Finding(
        "A normalisation is written out step by step: mean, difference, square, mean again, root, "
        "division; each step "
        "reads and writes the whole tensor.",
        "The library's normalisation computes the statistics and the result in one pass, with the same "
        "epsilon and the "
        "same population variance.",
    ),
)
