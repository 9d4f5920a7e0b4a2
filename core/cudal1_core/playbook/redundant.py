"""Steps that change nothing: reductions over one element, a ReLU of a ReLU, a clamp to a range already
kept."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx, nn

from cudal1_core.playbook.graphs import Editor, argument, dims, is_op, module_of, number, shape, value
from cudal1_core.playbook.rules import Rule
from cudal1_core.playbook.technique import Finding

_INF = float("inf")
_RANGES = {"tanh": (-1.0, 1.0), "sigmoid": (0.0, 1.0), "softmax": (0.0, 1.0), "relu": (0.0, _INF)}
_RANGES |= {"relu6": (0.0, 6.0), "hardsigmoid": (0.0, 1.0), "softplus": (0.0, _INF), "abs": (0.0, _INF)}
_MODULES: dict[type[nn.Module], str] = {
    nn.Tanh: "tanh",
    nn.Sigmoid: "sigmoid",
    nn.ReLU: "relu",
    nn.ReLU6: "relu6",
}


def _word(node: Any) -> str:
    """The operation, with activation modules named as functions."""
    module = module_of(node, tuple(_MODULES))
    return _MODULES[type(module)] if module is not None else str(node.meta.get("op", ""))


def _limits(node: Any) -> tuple[float, float] | None:
    """The closed range an activation or clamp keeps its outputs in."""
    if not isinstance(node, fx.Node):
        return None
    module = module_of(node, nn.Hardtanh)
    if module is not None:
        return float(module.min_val), float(module.max_val)
    if is_op(node, "hardtanh"):
        low, high = number(argument(node, 1, "min_val", -1.0)), number(argument(node, 2, "max_val", 1.0))
    elif is_op(node, "clamp", "clamp_min", "clamp_max"):
        low = argument(node, 1, "min") if not is_op(node, "clamp_max") else None
        high = argument(node, 2, "max") if is_op(node, "clamp") else None
        if is_op(node, "clamp_max"):
            high = argument(node, 1, "max")
        low = -_INF if low is None else number(low)
        high = _INF if high is None else number(high)
    else:
        return _RANGES.get(_word(node))
    return None if low is None or high is None else (float(low), float(high))


def _source(node: fx.Node) -> Any:
    return node.args[0] if node.args else node.kwargs.get("input")


def _single_element(node: fx.Node, edit: Editor) -> fx.Node | None:
    """A reduction whose dimensions all have one element."""
    inner = node
    if is_op(node, "getitem") and len(node.args) == 2 and node.args[1] == 0:
        inner = node.args[0]  # type: ignore[assignment]
        if not is_op(inner, "max", "min") or len(inner.users) != 1:
            return None
    elif not is_op(node, "mean", "sum", "logsumexp", "amax", "amin", "prod"):
        return None
    source = _source(inner)
    if not isinstance(source, fx.Node) or value(source) is None or value(node) is None:
        return None
    if inner.kwargs.get("dtype") is not None or not _floating(source):
        return None
    size = shape(source)
    found = dims(argument(inner, 1, "dim"), len(size)) if size else None
    if not found or any(size[d] != 1 for d in found):
        return None
    if shape(node) == size:
        return source
    return edit.call(torch.Tensor.squeeze, source, found[0] if len(found) == 1 else found)


def _floating(node: fx.Node) -> bool:
    tensor = value(node)
    return tensor is not None and tensor.is_floating_point()


def change(node: fx.Node, edit: Editor) -> fx.Node | None:
    made = _single_element(node, edit)
    if made is None:
        made = _kept_range(node) or _identity(node)
    if (
        made is None
        or made.op == "placeholder"
        or (any(user.op == "output" for user in node.users) and (made.op == "get_attr" or is_op(made, "getitem")))
    ):
        return None  # the reference's result may be a tensor of its own
    return made


def _kept_range(node: fx.Node) -> fx.Node | None:
    """A ReLU, leaky ReLU or clamp of values that are in its range already."""
    source = _source(node)
    known = _limits(source)
    if known is None or not isinstance(source, fx.Node):
        return None
    if is_op(node, "leaky_relu", "elu", "abs") or module_of(node, (nn.LeakyReLU, nn.ELU)) is not None:
        return source if known[0] >= 0 else None
    clamps = is_op(node, "clamp", "clamp_min", "clamp_max", "hardtanh") or _word(node) in ("relu", "relu6")
    wanted = _limits(node) if clamps or module_of(node, nn.Hardtanh) is not None else None
    if wanted is None or wanted[0] > known[0] or wanted[1] < known[1]:
        return None
    return source


def _identity(node: fx.Node) -> fx.Node | None:
    source = _source(node)
    if not isinstance(source, fx.Node):
        return None
    copied = is_op(node, "clone") and not node.kwargs and source.op != "get_attr"
    if copied and all(user.op != "output" and not user.meta.get("inplace") for user in node.users):
        return source
    dropout = module_of(node, (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d))
    if dropout is not None and (dropout.p == 0 or not dropout.training):
        return source
    return None


RULE = Rule(
    change,
    Finding(
        "Some steps of the reference change nothing: a reduction over a single element, a clamp to a "
        "range the values "
        "are in already, a second copy. Each still reads and writes the whole tensor.",
        "Those steps are left out; the values that reach the output are the same.",
    ),
)
