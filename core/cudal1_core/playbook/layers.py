"""Linear layers and convolutions in a traced graph, whether called as modules or as functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import fx, nn

from cudal1_core.playbook.graphs import Editor, argument, is_op, module_of, operands, shape, value

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


@dataclass(frozen=True, slots=True)
class Linear:
    """x @ weight.T + bias, with weight (out, in) unless `transposed`: then x @ weight with weight (in,
    out)."""

    x: fx.Node
    weight: Any  # node, or None for a module's weight not yet read
    bias: Any
    transposed: bool = False
    module: nn.Linear | None = None
    node: fx.Node | None = None

    def read(self, edit: Editor) -> tuple[fx.Node, fx.Node | None]:
        """Weight and bias as nodes."""
        if self.node is not None:
            weight = edit.weight(self.node, "weight")
            assert weight is not None
            return weight, edit.weight(self.node, "bias")
        return self.weight, self.bias


def linear(node: Any) -> Linear | None:
    module = module_of(node, nn.Linear)
    if module is not None:
        return Linear(node.args[0], None, None, module=module, node=node)
    if is_op(node, "linear"):
        weight = argument(node, 1, "weight")
        if value(weight) is not None and len(shape(weight)) == 2:
            return Linear(argument(node, 0, "input"), weight, argument(node, 2, "bias"))
    if is_op(node, "matmul"):
        pair = operands(node)
        if pair is None or value(pair[0]) is None or value(pair[1]) is None or len(shape(pair[0])) < 2:
            return None
        flipped = _transpose_source(pair[1])
        if flipped is not None and flipped.op == "get_attr":
            return Linear(pair[0], flipped, None)
        if pair[1].op == "get_attr" and len(shape(pair[1])) == 2:
            return Linear(pair[0], pair[1], None, transposed=True)
    return None


def _transpose_source(node: Any) -> fx.Node | None:
    """M of a two-dimensional M.T, however it is written."""
    if not is_op(node, "T", "t", "mT", "transpose", "permute") or len(shape(node)) != 2:
        return None
    if is_op(node, "transpose") and {argument(node, 1, "dim0") % 2, argument(node, 2, "dim1") % 2} != {0, 1}:
        return None
    if is_op(node, "permute"):
        order = node.args[1:] if not isinstance(node.args[1], (tuple, list)) else node.args[1]
        if tuple(d % 2 for d in order) != (1, 0):
            return None
    source = node.args[0]
    return source if isinstance(source, fx.Node) else None


def plain_convolution(node: Any) -> Any:
    """The convolution module (transposed or not) that a node calls, if its padding is zeros; else None."""
    module = module_of(node, CONVOLUTIONS + TRANSPOSED)
    return module if module is not None and module.padding_mode == "zeros" else None
