"""exp(x) / sum(exp(x)) is softmax; log(sum(exp(x))) is logsumexp."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from cudal1_core.playbook.graphs import Editor, argument, dims, is_float32, is_op, operands, shape
from cudal1_core.playbook.rules import Rule
from cudal1_core.playbook.technique import Finding


def _sum_of_exp(node: Any) -> tuple[fx.Node, int, bool] | None:
    """(exp node, dimension, keepdim) of a sum over one dimension."""
    if not is_op(node, "sum") or argument(node, 3, "dtype") is not None or not is_op(node.args[0], "exp"):
        return None
    inner = node.args[0]
    found = dims(argument(node, 1, "dim"), len(shape(inner)))
    if not found or len(found) != 1:
        return None
    return inner, found[0], bool(argument(node, 2, "keepdim", False))


def _unshifted(inner: Any, dim: int) -> Any:
    """x of x - max(x, dim, keepdim): softmax is the same with or without the shift."""
    pair = operands(inner) if is_op(inner, "sub") else None
    if pair is None:
        return inner
    source, top = pair
    top = top.args[0] if is_op(top, "getitem") and top.args[1] == 0 else top
    same = is_op(top, "max", "amax") and argument(top, 0, "input") is source and argument(top, 2, "keepdim", False)
    if not same or dims(argument(top, 1, "dim"), len(shape(source))) != (dim,):
        return inner
    return source


def change(node: fx.Node, edit: Editor) -> fx.Node | None:
    if not is_float32(node):
        return None
    if is_op(node, "div"):
        pair = operands(node)
        found = _sum_of_exp(pair[1]) if pair else None
        if pair is None or found is None or found[0] is not pair[0] or not found[2]:
            return None
        return edit.call(torch.softmax, _unshifted(found[0].args[0], found[1]), dim=found[1])
    if is_op(node, "log") and len(node.args) == 1:
        found = _sum_of_exp(node.args[0])
        if found is None or not isinstance(found[0].args[0], fx.Node):
            return None
        return edit.call(torch.logsumexp, found[0].args[0], dim=found[1], keepdim=found[2])
    return None


RULE = Rule(
    change,
    Finding(
        "Exponentials are summed and divided (or their logarithm taken) in steps of their own.",
        "softmax and logsumexp do the same in one pass and shift by the maximum, so they never overflow.",
    ),
)
