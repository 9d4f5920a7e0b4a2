"""The mean or sum over all positions of a convolution's output needs only sums of the input."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import torch
from torch import fx

from cudal1_core.playbook.graphs import (
    Editor,
    argument,
    dims,
    is_float32,
    is_op,
    module_of,
    number,
    operands,
    shape,
    single_use,
)
from cudal1_core.playbook.layers import TRANSPOSED
from cudal1_core.playbook.rules import Rule
from cudal1_core.playbook.technique import Finding


def change(node: fx.Node, edit: Editor) -> fx.Node | None:
    if not is_op(node, "mean", "sum") or node.kwargs.get("dtype") is not None or not node.args:
        return None
    source: Any = node.args[0]
    factors: list[tuple[str, float]] = []
    while single_use(source) and is_op(source, "mul", "div"):
        pair = operands(source)
        constant = number(pair[1]) if pair else None
        if pair is None or not constant:
            return None
        factors.append((source.meta["op"], constant))
        source = pair[0]
    module = module_of(source, TRANSPOSED) if single_use(source) and is_float32(source, node) else None
    if module is None or module.groups != 1 or module.padding_mode != "zeros":
        return None
    rank = int(type(module).__name__[-2])
    if dims(argument(node, 1, "dim"), rank + 2) != tuple(range(2, rank + 2)):
        return None
    return _build(node, edit, source, module, factors, rank)


def _build(
    node: fx.Node, edit: Editor, layer: fx.Node, module: Any, factors: list[tuple[str, float]], rank: int
) -> fx.Node | None:
    x = layer.args[0]
    assert isinstance(x, fx.Node)
    if any(module.padding) or len(shape(x)) != rank + 2:
        return None  # with padding, some products fall outside the output and would have to be taken back
    positions = prod(shape(layer)[2:])
    if prod(shape(x)[2:]) < 4:
        return None
    spatial = tuple(range(2, rank + 2))
    weight, bias = edit.weight(layer, "weight"), edit.weight(layer, "bias")
    sums = edit.call(torch.Tensor.sum, x, spatial)
    result = edit.call(operator.matmul, sums, edit.call(torch.Tensor.sum, weight, spatial))
    if is_op(node, "mean"):
        result = edit.call(operator.truediv, result, positions)
        result = edit.call(operator.add, result, bias) if bias is not None else result
    elif bias is not None:
        result = edit.call(operator.add, result, edit.call(operator.mul, bias, positions))
    for word, constant in reversed(factors):
        result = edit.call(operator.mul if word == "mul" else operator.truediv, result, constant)
    if bool(argument(node, 2, "keepdim", False)):
        for _ in range(rank):
            result = edit.call(torch.Tensor.unsqueeze, result, -1)
    return result


RULE = Rule(
    change,
    Finding(
        "A transposed convolution fills a large output that is only ever seen through its sum over all positions.",
        "Every input value meets every tap of the kernel exactly once, so the sum over positions is the "
        "sum of the input "
        "times the sum of the kernel: a small matrix product, plus the bias.",
    ),
)
