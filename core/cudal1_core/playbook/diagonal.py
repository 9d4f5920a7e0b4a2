"""diag(a) @ B is a scaling of B's rows; A @ diag(b) a scaling of A's columns."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from cudal1_core.playbook.graphs import Editor, argument, is_op, operands, shape, value
from cudal1_core.playbook.rules import Rule
from cudal1_core.playbook.technique import Finding


def _diagonal(node: Any) -> Any:
    """The vector (or batch of vectors) a diagonal matrix was made from, or None."""
    if is_op(node, "diag", "diagflat"):
        vector = argument(node, 0, "input")
        offset = argument(node, 1, "diagonal", argument(node, 1, "offset", 0))
        return vector if offset == 0 and value(vector) is not None and len(shape(vector)) == 1 else None
    if is_op(node, "diag_embed") and argument(node, 1, "offset", 0) == 0:
        usual = argument(node, 2, "dim1", -2) == -2 and argument(node, 3, "dim2", -1) == -1
        return argument(node, 0, "input") if usual else None
    return None


def change(node: fx.Node, edit: Editor) -> fx.Node | None:
    pair = operands(node) if is_op(node, "matmul") else None
    if pair is None or value(pair[0]) is None or value(pair[1]) is None:
        return None
    left, right = pair
    rows, columns = _diagonal(left), _diagonal(right)
    if rows is not None:
        if len(shape(right)) == 1:
            return edit.call(operator.mul, rows, right)
        return edit.call(operator.mul, edit.call(torch.Tensor.unsqueeze, rows, -1), right)
    if columns is not None:
        if len(shape(columns)) > 1 and len(shape(left)) > 1:
            columns = edit.call(torch.Tensor.unsqueeze, columns, -2)
        return edit.call(operator.mul, left, columns)
    return None


RULE = Rule(
    change,
    Finding(
        "The reference builds a full diagonal matrix and multiplies with it: of the N*N entries read and "
        "the N*N*M "
        "multiplications done, all but N*M are by zero.",
        "Row i of diag(a) @ B is a[i] * B[i], so one broadcast multiplication replaces the matrix product "
        "(and A @ diag(b) scales columns). Nothing is approximated; the zeros are simply not added.",
    ),
)
