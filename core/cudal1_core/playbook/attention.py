"""softmax(Q @ K^T) @ V spelled out becomes one fused attention call."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn

from cudal1_core.playbook.graphs import (
    Editor,
    argument,
    is_float32,
    is_op,
    module_of,
    number,
    operands,
    shape,
    single_use,
    value,
)
from cudal1_core.playbook.rules import Rule
from cudal1_core.playbook.technique import Finding


def _softmax_input(node: Any) -> Any:
    """What a softmax over the last dimension is taken of, else None."""
    if not isinstance(node, fx.Node) or value(node) is None:
        return None
    rank = len(shape(node))
    module = module_of(node, nn.Softmax)
    if module is not None:
        return node.args[0] if module.dim is not None and module.dim % rank == rank - 1 else None
    if is_op(node, "softmax") and argument(node, 2, "dtype") is None:
        dim = argument(node, 1, "dim")
        return argument(node, 0, "input") if type(dim) is int and dim % rank == rank - 1 else None
    return None


def _without_dropout(node: Any) -> Any:
    while True:
        module = module_of(node, nn.Dropout)
        if module is None or not (module.p == 0 or not module.training) or not single_use(node):
            return node
        node = node.args[0]


def _scores(node: Any) -> tuple[fx.Node, float, Any] | None:
    """(product, scale, condition or added mask) of attention scores; mask is ("fill" or "add", node) or
    None."""
    scale, mask = 1.0, None
    while single_use(node):
        if is_op(node, "masked_fill") and mask is None and scale == 1.0:
            if number(argument(node, 2, "value")) != -math.inf:
                return None
            mask, node = ("fill", argument(node, 1, "mask")), argument(node, 0, "input")
            continue
        pair = operands(node) if is_op(node, "mul", "div", "add") else None
        if is_op(node, "matmul"):
            return node, scale, mask
        if pair is None:
            return None
        left, right = pair
        if is_op(node, "mul", "add") and number(left) is not None:
            left, right = right, left
        constant = number(right)
        if is_op(node, "add") and isinstance(right, fx.Node) and mask is None and scale == 1.0:
            mask, node = ("add", right), left
        elif constant and is_op(node, "mul", "div"):
            scale, node = scale * (constant if is_op(node, "mul") else 1 / constant), left
        else:
            return None
    return None


def _swapped(node: Any) -> Any:
    """M of M.transpose(-2, -1), however it is written; else None."""
    if not isinstance(node, fx.Node) or value(node) is None:
        return None
    rank = len(shape(node))
    last = {rank - 2, rank - 1}
    if is_op(node, "mT") or (is_op(node, "T", "t") and rank == 2):
        return node.args[0]
    if is_op(node, "transpose"):
        return node.args[0] if {argument(node, 1, "dim0") % rank, argument(node, 2, "dim1") % rank} == last else None
    if is_op(node, "permute"):
        order = node.args[1] if isinstance(node.args[1], (tuple, list)) else node.args[1:]
        plain = [d % rank for d in order if isinstance(d, int)]
        return node.args[0] if plain == [*range(rank - 2), rank - 1, rank - 2] else None
    return None


def _is_causal(condition: Any, length: int, sources: int) -> bool:
    """The condition hides exactly what lies above the diagonal, by a mask built in this very forward."""
    if length != sources or not isinstance(condition, fx.Node):
        return False
    pair = operands(condition) if is_op(condition, "eq") else None
    if pair is not None:
        return pair[1] == 0 and _triangle(pair[0], "tril", 0)
    while is_op(condition, "bool", "to") and isinstance(condition.args[0], fx.Node):
        condition = condition.args[0]
    return _triangle(condition, "triu", 1)


def _triangle(node: Any, name: str, diagonal: int) -> bool:
    while is_op(node, "view", "unsqueeze", "bool", "to", "reshape"):
        node = node.args[0]
    if not is_op(node, name) or argument(node, 1, "diagonal", 0) != diagonal:
        return False
    inner = node.args[0]
    return is_op(inner, "ones") and value(inner) is not None


def change(node: fx.Node, edit: Editor) -> fx.Node | None:
    pair = operands(node) if is_op(node, "matmul") else None
    if pair is None or not is_float32(node):
        return None
    weights = _without_dropout(pair[0])
    source = _softmax_input(weights) if single_use(weights) and single_use(pair[0]) else None
    found = _scores(source) if source is not None else None
    if found is None:
        return None
    product, scale, mask = found
    sides = operands(product)
    if sides is None or not is_float32(sides[0], sides[1], pair[1]):
        return None
    query, values = sides[0], pair[1]
    rank = len(shape(query))
    if rank not in (3, 4) or len(shape(values)) != rank or len(shape(sides[1])) != rank:
        return None
    if shape(query)[:-2] != shape(values)[:-2] or shape(query)[:-2] != shape(sides[1])[:-2]:
        return None
    keys = _swapped(sides[1])
    if keys is None:
        keys = edit.call(torch.Tensor.transpose, sides[1], -2, -1)
    return _fused(edit, query, keys, values, scale, mask)


def _fused(edit: Editor, query: Any, keys: Any, values: Any, scale: float, mask: Any) -> fx.Node | None:
    kwargs: dict[str, Any] = {}
    length, width = shape(query)[-2:]
    if mask is not None:
        kind, condition = mask
        if kind == "fill" and _is_causal(condition, length, shape(keys)[-2]):
            kwargs["is_causal"] = True
        else:
            made = _mask(edit, kind, condition, query)
            if made is None:
                return None
            kwargs["attn_mask"] = made
    if abs(scale * math.sqrt(width) - 1) > 1e-7:
        kwargs["scale"] = scale
    if len(shape(query)) == 4:
        return edit.call(F.scaled_dot_product_attention, query, keys, values, **kwargs)
    if "attn_mask" in kwargs and len(shape(kwargs["attn_mask"])) > 2:
        kwargs["attn_mask"] = edit.call(torch.Tensor.unsqueeze, kwargs["attn_mask"], 1)
    query, keys, values = (edit.call(torch.Tensor.unsqueeze, part, 1) for part in (query, keys, values))
    heads = edit.call(F.scaled_dot_product_attention, query, keys, values, **kwargs)
    return edit.call(torch.Tensor.squeeze, heads, 1)


def _mask(edit: Editor, kind: str, condition: Any, query: fx.Node) -> fx.Node | None:
    """A mask as the fused call wants it: True where attention is allowed, or a term to add."""
    if not isinstance(condition, fx.Node) or value(condition) is None or len(shape(condition)) < 2:
        return None
    if kind == "add":
        return condition if value(condition).dtype == value(query).dtype else None  # type: ignore[union-attr]
    pair = operands(condition) if is_op(condition, "eq") and single_use(condition) else None
    if pair is not None and isinstance(pair[0], fx.Node) and number(pair[1]) is not None:
        return edit.call(torch.Tensor.ne, pair[0], pair[1])
    return edit.call(torch.logical_not, condition)


RULE = Rule(
    change,
    Finding(
        "Attention is spelled out: the score matrix is written to memory, scaled, passed through softmax "
        "and read again, "
        "a length x length matrix for every head and every step.",
        "F.scaled_dot_product_attention computes the same sums block by block and never stores the scores. "
        "The scale and mask are handed over as they are.",
    ),
)
