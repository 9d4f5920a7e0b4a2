"""The sum or mean over a linear layer's outputs is one vector product with the summed weights."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from cudal1_core.playbook.graphs import (
    Editor,
    argument,
    dims,
    is_float32,
    is_op,
    number,
    operands,
    shape,
    single_use,
)
from cudal1_core.playbook.layers import linear
from cudal1_core.playbook.rules import Rule
from cudal1_core.playbook.technique import Finding

FEWEST_ROWS = 4  # below this, summing the weights costs as much as it saves


def _link(node: Any, features: int) -> tuple[str, fx.Node, Any] | None:
    """(operation, inner, operand) of a step that a sum over features passes through, or None."""
    pair = operands(node) if is_op(node, "mul", "div", "add", "sub") else None
    if pair is None:
        return None
    inner, other = pair
    if number(inner) is not None and is_op(node, "mul", "add"):
        inner, other = other, inner
    if not isinstance(inner, fx.Node) or shape(inner) != shape(node):
        return None
    if number(other) is not None:
        return node.meta["op"], inner, other
    vector = isinstance(other, fx.Node) and other.op == "get_attr" and shape(other) in ((features,), (1, features))
    return (node.meta["op"], inner, other) if vector and is_op(node, "add", "sub") else None


def change(node: fx.Node, edit: Editor) -> fx.Node | None:
    if not is_op(node, "sum", "mean") or node.kwargs.get("dtype") is not None or not node.args:
        return None
    source = node.args[0]
    if not isinstance(source, fx.Node) or not is_float32(source, node):
        return None
    rank, features = len(shape(source)), shape(source)[-1]
    if rank < 2 or dims(argument(node, 1, "dim"), rank) != (rank - 1,):
        return None
    keep = bool(argument(node, 2, "keepdim", False))
    links: list[tuple[str, Any]] = []
    while single_use(source) and linear(source) is None:
        found = _link(source, features)
        if found is None:
            return None
        links.append((found[0], found[2]))
        source = found[1]
    layer = linear(source) if single_use(source) else None
    if layer is None or _rows(shape(layer.x)) < FEWEST_ROWS:
        return None
    return _build(node, edit, layer, links, keep, features)


def _rows(size: tuple[int, ...]) -> int:
    count = 1
    for part in size[:-1]:
        count *= part
    return count


def _build(node: fx.Node, edit: Editor, layer: Any, links: list[tuple[str, Any]], keep: bool, features: int) -> fx.Node:
    reduce = torch.Tensor.sum if is_op(node, "sum") else torch.Tensor.mean
    weight, bias = layer.read(edit)
    vector = edit.call(reduce, weight, 1 if layer.transposed else 0)
    result = edit.call(operator.matmul, layer.x, vector)
    if bias is not None:
        result = edit.call(operator.add, result, edit.call(reduce, bias))
    for word, other in reversed(links):
        if word in ("mul", "div"):
            result = edit.call(getattr(operator, "mul" if word == "mul" else "truediv"), result, other)
        elif isinstance(other, fx.Node):
            result = edit.call(getattr(operator, word), result, edit.call(reduce, other))
        else:
            scaled = other * features if is_op(node, "sum") else other
            result = edit.call(getattr(operator, word), result, scaled)
    return edit.call(torch.Tensor.unsqueeze, result, -1) if keep else result


RULE = Rule(
    change,
    Finding(
        "A linear layer computes every output feature, and all of them are then added up: the large "
        "matrix product is "
        "only ever seen through one number per row.",
        "Summing is linear, so sum_j (x @ W.T + b)_j = x @ (sum_j W_j) + sum_j b_j: one matrix-vector "
        "product. "
        "The weights are summed anew in every call, so loaded or changed weights count at once.",
    ),
)
