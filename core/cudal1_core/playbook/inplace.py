"""Elementwise steps write over a value nobody needs any more, instead of into fresh memory."""

from __future__ import annotations

from math import prod
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn

from cudal1_core.playbook.graphs import Editor, argument, module_of, number, operands, shape, value
from cudal1_core.playbook.rules import GraphTechnique, Rule
from cudal1_core.playbook.technique import Finding

SMALLEST = 1 << 15  # elements; smaller tensors come from memory that is warm already
_PRODUCERS = {"linear", "matmul", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d"}
_PRODUCERS |= {
    "conv_transpose3d",
    "softmax",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "cat",
    "stack",
}
_PRODUCERS |= {
    "mul",
    "add",
    "sub",
    "div",
    "relu",
    "tanh",
    "sigmoid",
    "gelu",
    "silu",
    "mish",
    "hardswish",
    "exp",
}
_PRODUCERS |= {
    "leaky_relu",
    "layer_norm",
    "group_norm",
    "hardtanh",
    "softplus",
    "pow",
    "sqrt",
    "rsqrt",
    "elu",
    "neg",
}
_LAYERS = (
    nn.Linear,
    nn.modules.conv._ConvNd,
    nn.modules.batchnorm._NormBase,
    nn.GroupNorm,
    nn.LayerNorm,
    nn.modules.pooling._AvgPoolNd,
    nn.Softmax,
    nn.GELU,
    nn.Tanh,
    nn.Sigmoid,
)
_UNARY: dict[str, Any] = {
    "relu": torch.relu_,
    "tanh": torch.tanh_,
    "sigmoid": torch.sigmoid_,
    "exp": torch.exp_,
    "sqrt": torch.sqrt_,
    "rsqrt": torch.rsqrt_,
    "abs": torch.abs_,
    "neg": torch.neg_,
}
_MODULES: dict[type[nn.Module], Any] = {
    nn.ReLU: torch.relu_,
    nn.Tanh: torch.tanh_,
    nn.Sigmoid: torch.sigmoid_,
}
_FUSED: dict[str, Any] = {"silu": F.silu, "mish": F.mish, "hardswish": F.hardswish}
_BINARY: dict[str, Any] = {
    "mul": torch.Tensor.mul_,
    "add": torch.Tensor.add_,
    "sub": torch.Tensor.sub_,
    "div": torch.Tensor.div_,
}


def _own(node: Any, user: fx.Node) -> bool:
    """A fresh value that only `user` reads, and large enough to matter."""
    if not isinstance(node, fx.Node) or list(node.users) != [user] or value(node) is None:
        return False
    if shape(node) != shape(user) or value(node).dtype != value(user).dtype or prod(shape(node)) < SMALLEST:  # type: ignore[union-attr]
        return False
    if not value(node).is_contiguous():  # type: ignore[union-attr]
        return False
    if node.op == "call_module":
        return isinstance(node.meta["module"], _LAYERS)
    return node.meta.get("op") in _PRODUCERS or bool(node.meta.get("inplace"))


def change(node: fx.Node, edit: Editor) -> fx.Node | None:
    if node.meta.get("inplace") or value(node) is None:
        return None
    word = str(node.meta.get("op"))
    if word in _BINARY:
        return _binary(node, edit, word)
    source = node.args[0] if node.args else None
    if not isinstance(source, fx.Node) or not _own(source, node):
        return None
    if word in _UNARY and len(node.args) == 1:
        return edit.call(_UNARY[word], source)
    if word in _FUSED:
        return edit.call(_FUSED[word], source, inplace=True)
    if word == "leaky_relu":
        return edit.call(F.leaky_relu, source, argument(node, 1, "negative_slope", 0.01), inplace=True)
    if word == "clamp":
        low, high = argument(node, 1, "min"), argument(node, 2, "max")
        plain = all(item is None or number(item) is not None for item in (low, high))
        return edit.call(torch.clamp_, source, low, high) if plain else None
    if word == "hardtanh":
        return edit.call(torch.clamp_, source, argument(node, 1, "min_val", -1.0), argument(node, 2, "max_val", 1.0))
    return _module(node, source, edit)


def _module(node: fx.Node, source: fx.Node, edit: Editor) -> fx.Node | None:
    module = module_of(node, (*_MODULES, nn.LeakyReLU, nn.Hardtanh, nn.Mish, nn.SiLU))
    if module is None:
        return None
    if type(module) in _MODULES:
        return edit.call(_MODULES[type(module)], source)
    if isinstance(module, nn.LeakyReLU):
        return edit.call(F.leaky_relu, source, module.negative_slope, inplace=True)
    if isinstance(module, nn.Hardtanh):
        return edit.call(torch.clamp_, source, module.min_val, module.max_val)
    return edit.call(F.mish if isinstance(module, nn.Mish) else F.silu, source, inplace=True)


def _binary(node: fx.Node, edit: Editor, word: str) -> fx.Node | None:
    pair = operands(node)
    if pair is None:
        return None
    left, right = pair
    if not _own(left, node) and word in ("mul", "add"):
        left, right = right, left
    if not _own(left, node) or left is right:
        return None
    return edit.call(_BINARY[word], left, right)


TECHNIQUE = GraphTechnique(
    "in-place memory",
    "memory",
    40,
    (
        Rule(
            change,
            Finding(
                "Elementwise steps write each result into newly allocated memory and leave the old one "
                "behind; on large "
                "tensors getting and touching fresh pages costs more than the arithmetic.",
                "A step whose input was made inside forward and is read by nobody else writes over that "
                "input. Inputs, "
                "weights and outputs already returned are never written to.",
            ),
        ),
    ),
)
