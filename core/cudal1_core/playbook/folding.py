"""Scales, shifts and eval-mode batch norm after a linear layer or convolution move into its weights."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn

from cudal1_core.playbook.graphs import (
    Editor,
    is_float32,
    module_of,
    number,
    operands,
    shape,
    single_use,
    value,
)
from cudal1_core.playbook.layers import TRANSPOSED, linear, plain_convolution
from cudal1_core.playbook.rules import GraphTechnique, Rule
from cudal1_core.playbook.technique import Finding

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_RATIO = 4  # outputs must outnumber the weights by this much for scaling the weights to pay


@dataclass(frozen=True, slots=True)
class _Link:
    """One step after the layer: `word` with `other` (number or weight), or a batch norm (word "norm")."""

    word: str
    other: Any


def _channel_axis(node: fx.Node, layer: fx.Node) -> int:
    """Where the layer's output features are."""
    return 1 if plain_convolution(layer) is not None else len(shape(node)) - 1


def _per_channel(other: Any, size: tuple[int, ...], axis: int) -> bool:
    """A weight that broadcasts over everything but the features."""
    if not isinstance(other, fx.Node) or other.op != "get_attr" or value(other) is None:
        return False
    mine = shape(other)
    aligned = (1,) * (len(size) - len(mine)) + mine
    if len(mine) > len(size):
        return False
    return all(part == 1 or (index == axis and part == size[axis]) for index, part in enumerate(aligned))


def _walk(node: fx.Node) -> tuple[fx.Node, list[_Link]] | None:
    """The layer under a run of affine steps, and the steps from the last to the first."""
    links: list[_Link] = []
    raw: list[tuple[str, Any]] = []
    current: Any = node
    while isinstance(current, fx.Node) and value(current) is not None:
        if plain_convolution(current) is not None or linear(current) is not None:
            axis = _channel_axis(node, current)
            for word, other in raw:
                if word == "norm" and axis != 1:
                    return None
                if word != "norm" and number(other) is None and not _per_channel(other, shape(node), axis):
                    return None
                links.append(_Link(word, other))
            return (current, links) if links else None
        step = _step(current)
        if step is None or shape(step[2]) != shape(node) or not single_use(step[2]):
            return None
        raw.append((step[0], step[1]))
        current = step[2]
    return None


def _step(node: fx.Node) -> tuple[str, Any, fx.Node] | None:
    norm = module_of(node, _NORMS)
    if norm is not None:
        usable = not norm.training and norm.running_mean is not None
        inner = node.args[0]
        return ("norm", node, inner) if usable and isinstance(inner, fx.Node) else None
    word = str(node.meta.get("op"))
    pair = operands(node) if word in ("mul", "div", "add", "sub") else None
    if pair is None:
        return None
    inner, other = pair
    if word in ("mul", "add") and (number(inner) is not None or _is_weight(inner)):
        inner, other = other, inner
    if not isinstance(inner, fx.Node) or _is_weight(inner) or value(inner) is None:
        return None
    return (word, other, inner) if number(other) is not None or _is_weight(other) else None


def _is_weight(node: Any) -> bool:
    return isinstance(node, fx.Node) and node.op == "get_attr"


def change(node: fx.Node, edit: Editor) -> fx.Node | None:
    if value(node) is None or not is_float32(node):
        return None
    found = _walk(node)
    if found is None:
        return None
    layer, links = found
    convolution = plain_convolution(layer)
    if convolution is not None and type(convolution) in TRANSPOSED and convolution.groups != 1:
        return None
    lin = linear(layer)
    weight, bias = lin.read(edit) if lin is not None else (edit.weight(layer, "weight"), edit.weight(layer, "bias"))
    assert weight is not None
    scales = any(link.word in ("mul", "div", "norm") for link in links)
    if scales and prod(shape(node)) < _RATIO * prod(shape(weight)):
        return None
    scale, shift = _combine(edit, links, bias)
    if lin is not None:
        return _linear(edit, lin, weight, scale, shift)
    return _convolution(edit, layer, convolution, weight, scale, shift)


def _combine(edit: Editor, links: list[_Link], bias: fx.Node | None) -> tuple[Any, Any]:
    """The factor on the weights and the new bias: numbers, one-dimensional nodes, or None for no change."""
    scale: Any = None
    shift: Any = bias
    for link in reversed(links):
        if link.word == "norm":
            factor, mean, beta = _norm(edit, link.other)
            scale = factor if scale is None else edit.call(operator.mul, scale, factor)
            if shift is not None:
                centred = edit.call(operator.mul, edit.call(operator.sub, shift, mean), factor)
                shift = edit.call(operator.add, centred, beta) if beta is not None else centred
            else:
                product = edit.call(operator.mul, mean, factor)
                shift = edit.call(operator.sub, beta, product) if beta is not None else _negative(edit, product)
            continue
        other = link.other
        if isinstance(other, fx.Node) and len(shape(other)) != 1:
            other = edit.call(torch.Tensor.reshape, other, -1)
        if link.word in ("mul", "div"):
            scale = _scaled(edit, link.word, scale, other)
            shift = None if shift is None else _arith(edit, link.word, shift, other)
        elif shift is None:
            shift = other if link.word == "add" else _negative(edit, other)
        else:
            shift = _arith(edit, link.word, shift, other)
    return scale, shift


def _scaled(edit: Editor, word: str, scale: Any, other: Any) -> Any:
    if scale is None:
        return other if word == "mul" else _reciprocal(edit, other)
    return _arith(edit, word, scale, other)


def _reciprocal(edit: Editor, other: Any) -> Any:
    return 1.0 / other if number(other) is not None else edit.call(torch.Tensor.reciprocal, other)


def _negative(edit: Editor, other: Any) -> Any:
    return -other if number(other) is not None else edit.call(operator.neg, other)


def _arith(edit: Editor, word: str, left: Any, right: Any) -> Any:
    function = {"mul": operator.mul, "div": operator.truediv, "add": operator.add, "sub": operator.sub}[word]
    if number(left) is not None and number(right) is not None:
        return function(left, right)
    if number(left) is not None and word in ("add", "mul"):
        return edit.call(function, right, left)
    return edit.call(function, left, right)


def _norm(edit: Editor, node: fx.Node) -> tuple[fx.Node, fx.Node, fx.Node | None]:
    """Factor, mean and beta of an eval-mode batch norm."""
    variance, mean = edit.weight(node, "running_var"), edit.weight(node, "running_mean")
    assert variance is not None
    assert mean is not None
    factor = edit.call(torch.rsqrt, edit.call(operator.add, variance, edit.setting(node, "eps")))
    gamma = edit.weight(node, "weight")
    factor = factor if gamma is None else edit.call(operator.mul, gamma, factor)
    factor.meta["hint"] = "scale"
    return factor, mean, edit.weight(node, "bias")


def _bias(edit: Editor, shift: Any, weight: fx.Node, features: int) -> Any:
    """A bias of shape (features,), from a vector, a one-element vector or a number."""
    if shift is None:
        return None
    if number(shift) is not None:
        return edit.call(torch.Tensor.new_full, weight, (features,), float(shift))
    if shape(shift) != (features,):
        shift = edit.call(torch.Tensor.expand, shift, features)
    if shift.op != "get_attr":
        shift.meta["hint"] = "shift"
    return shift


def _linear(edit: Editor, lin: Any, weight: fx.Node, scale: Any, shift: Any) -> fx.Node | None:
    features = shape(weight)[1 if lin.transposed else 0]
    if lin.transposed:
        weight = edit.call(torch.Tensor.t, weight)
    if scale is not None:
        if isinstance(scale, fx.Node) and shape(scale) != (1,):
            scale = edit.call(torch.Tensor.unsqueeze, scale, 1)
        weight = edit.call(operator.mul, weight, scale)
        weight.meta["hint"] = "weight"
    return edit.call(F.linear, lin.x, weight, _bias(edit, shift, weight, features))


def _convolution(edit: Editor, layer: fx.Node, module: Any, weight: fx.Node, scale: Any, shift: Any) -> fx.Node:
    flipped = type(module) in TRANSPOSED
    rank = int(type(module).__name__[-2])
    if scale is not None:
        if isinstance(scale, fx.Node):
            scale.meta.setdefault("hint", "scale")
            where = (1, -1) if flipped else (-1, 1)
            scale = edit.call(torch.Tensor.view, scale, *where, *(1,) * rank)
        weight = edit.call(operator.mul, weight, scale)
        weight.meta["hint"] = "weight"
    function = getattr(F, f"conv_transpose{rank}d" if flipped else f"conv{rank}d")
    settings = ["stride", "padding", "dilation", "groups"] + (["output_padding"] if flipped else [])
    kwargs: dict[str, Any] = {}
    for name in settings:
        usual = (1,) * rank if name in ("stride", "dilation") else (0,) * rank if name != "groups" else 1
        if getattr(module, name) != usual:
            kwargs[name] = edit.setting(layer, name)
    return edit.call(function, layer.args[0], weight, _bias(edit, shift, weight, module.out_channels), **kwargs)


TECHNIQUE = GraphTechnique(
    "folded layers",
    "algebra",
    70,
    (
        Rule(
            change,
            Finding(
                "After a linear layer or convolution the reference scales and shifts every output element "
                "in steps of "
                "their own; each step reads and writes the whole output.",
                "Scaling and shifting outputs per feature equals scaling the weights and changing the "
                "bias, which are "
                "far smaller. They are worked out from the live weights in every call, so nothing goes "
                "stale.",
            ),
        ),
    ),
)
