"""Spelled-out activations (GELU, SiLU, Mish, hard swish, sigmoid) become the library's single pass."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn

from cudal1_core.playbook.graphs import (
    Editor,
    argument,
    close,
    either_way,
    is_float32,
    is_op,
    module_of,
    number,
    operands,
    shape,
    value,
)
from cudal1_core.playbook.rules import Rule
from cudal1_core.playbook.technique import Finding


@dataclass
class _Product:
    """number * product of node ** power."""

    scale: float = 1.0
    powers: Counter[fx.Node] = field(default_factory=Counter)

    def is_power(self, base: fx.Node, power: int, scale: float) -> bool:
        return dict(self.powers) == {base: power} and close(self.scale, scale)


def _product(node: Any, stop: frozenset[fx.Node] = frozenset()) -> _Product:
    made = _Product()
    _multiply(node, made, 1, stop)
    return made


def _multiply(node: Any, made: _Product, power: int, stop: frozenset[fx.Node]) -> None:
    found = number(node)
    if found is not None:
        made.scale *= float(found) ** power
        return
    pair = operands(node) if isinstance(node, fx.Node) and node not in stop else None
    if pair is not None and is_op(node, "mul"):
        _multiply(pair[0], made, power, stop)
        _multiply(pair[1], made, power, stop)
    elif pair is not None and is_op(node, "div") and number(pair[1]):
        made.scale /= float(pair[1]) ** power
        _multiply(pair[0], made, power, stop)
    elif pair is not None and is_op(node, "pow") and number(pair[1]) in (2, 3):
        _multiply(pair[0], made, power * int(pair[1]), stop)
    elif is_op(node, "square"):
        _multiply(node.args[0], made, 2 * power, stop)
    else:
        made.powers[node] += power


def _unary(node: Any, name: str, module: type[nn.Module] | None = None) -> Any:
    """The argument of a one-argument function or its module, else None."""
    if module is not None and module_of(node, module) is not None:
        return node.args[0]
    if is_op(node, name) and len(node.args) == 1 and not {k for k, v in node.kwargs.items() if v}:
        return node.args[0]
    return None


def _one_plus(node: Any, name: str) -> Any:
    """u of 1 + name(u), else None."""
    for left, right in either_way(node, "add"):
        if number(left) == 1:
            return _unary(right, name)
    return None


def _tanh_inner(inner: Any, x: fx.Node) -> bool:
    """inner is sqrt(2/pi) * (x + 0.044715 x^3), also with x taken out of the sum."""
    root = math.sqrt(2 / math.pi)
    outer = _product(inner, frozenset({x}))
    for factor in outer.powers:
        for left, right in either_way(factor, "add"):
            rest = outer.powers - Counter([factor])
            one, cube = _product(left, frozenset({x})), _product(right, frozenset({x}))
            direct = not rest and one.is_power(x, 1, 1.0) and cube.is_power(x, 3, 0.044715)
            taken_out = dict(rest) == {x: 1} and number(left) == 1 and cube.is_power(x, 2, 0.044715)
            if (direct or taken_out) and outer.powers[factor] == 1 and close(outer.scale, root):
                return True
    return False


def _gelu(node: fx.Node, edit: Editor) -> fx.Node | None:
    whole = _product(node)
    for factor, power in whole.powers.items():
        rest = whole.powers - Counter([factor])
        if power != 1 or len(rest) != 1 or not close(whole.scale, 0.5):
            continue
        x, times = next(iter(rest.items()))
        if times != 1:
            continue
        inner = _one_plus(factor, "tanh")
        if inner is not None and _tanh_inner(inner, x):
            return edit.call(F.gelu, x, approximate="tanh")
        inner = _one_plus(factor, "erf")
        if inner is not None and _product(inner, frozenset({x})).is_power(x, 1, math.sqrt(0.5)):
            return edit.call(F.gelu, x)
    return None


def _gated(node: fx.Node, edit: Editor) -> fx.Node | None:
    """x * g(x): SiLU, Mish, hard swish."""
    for x, gate in either_way(node, "mul"):
        if not isinstance(x, fx.Node) or value(x) is None:
            continue
        if _unary(gate, "sigmoid", nn.Sigmoid) is x:
            return edit.call(F.silu, x)
        soft = _unary(gate, "tanh", nn.Tanh)
        if soft is not None and _softplus(soft) is x:
            return edit.call(F.mish, x)
        if _hard_sigmoid(gate, x):
            return edit.call(F.hardswish, x)
    return None


def _softplus(node: Any) -> Any:
    module = module_of(node, nn.Softplus)
    if module is not None:
        return node.args[0] if module.beta == 1 and module.threshold == 20 else None
    if is_op(node, "softplus") and argument(node, 1, "beta", 1) == 1 and argument(node, 2, "threshold", 20) == 20:
        return node.args[0]
    return None


def _hard_sigmoid(gate: Any, x: fx.Node) -> bool:
    """clamp((x + 3) / 6, 0, 1) or relu6(x + 3) / 6."""
    if is_op(gate, "clamp") and argument(gate, 1, "min") == 0 and argument(gate, 2, "max") == 1:
        return _three_more_over_six(gate.args[0], x)
    pair = operands(gate) if is_op(gate, "div") else None
    if pair is None or number(pair[1]) != 6:
        return False
    inner = _unary(pair[0], "relu6", nn.ReLU6)
    return inner is not None and _three_more(inner, x)


def _three_more(node: Any, x: fx.Node) -> bool:
    return any(left is x and number(right) == 3 for left, right in either_way(node, "add"))


def _three_more_over_six(node: Any, x: fx.Node) -> bool:
    pair = operands(node) if is_op(node, "div") else None
    return pair is not None and number(pair[1]) == 6 and _three_more(pair[0], x)


def _quotient(node: fx.Node, edit: Editor) -> fx.Node | None:
    """x / (1 + exp(-x)) is SiLU, 1 / (1 + exp(-x)) the sigmoid."""
    pair = operands(node)
    if pair is None:
        return None
    power = _one_plus(pair[1], "exp")
    x = _unary(power, "neg") if power is not None else None
    if not isinstance(x, fx.Node) or shape(x) != shape(node):
        return None
    if pair[0] is x:
        return edit.call(F.silu, x)
    return edit.call(torch.sigmoid, x) if number(pair[0]) == 1 else None


def change(node: fx.Node, edit: Editor) -> fx.Node | None:
    if not is_float32(node):
        return None
    if is_op(node, "mul"):
        return _gelu(node, edit) or _gated(node, edit)
    if is_op(node, "div"):
        return _gelu(node, edit) or _quotient(node, edit)
    return None


RULE = Rule(
    change,
    Finding(
        "An activation is written out of its parts, so every power, product and sum makes a pass over the "
        "whole tensor.",
        "The library's activation is the same formula with the same constants, computed in one pass.",
    ),
)
