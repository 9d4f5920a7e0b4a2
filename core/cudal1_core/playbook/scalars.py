"""A run of multiplications and additions by numbers is one multiplication and at most one addition."""

from __future__ import annotations

import operator
from dataclasses import dataclass

from torch import fx

from cudal1_core.playbook.graphs import Editor, is_float32, is_op, number, operands, shape, value
from cudal1_core.playbook.rules import Rule
from cudal1_core.playbook.technique import Finding


@dataclass(frozen=True, slots=True)
class _Form:
    """scale * base + shift, and the steps that compute it now."""

    base: fx.Node
    scale: float = 1.0
    shift: float = 0.0
    steps: frozenset[fx.Node] = frozenset()


def _form(node: fx.Node, depth: int = 0) -> _Form:
    pair = operands(node) if is_op(node, "mul", "div", "add", "sub") and depth < 12 else None
    if pair is None or not is_float32(node):
        return _Form(node)
    left, right = pair
    word = node.meta["op"]
    if number(left) is not None and word in ("mul", "add"):
        left, right = right, left
    if not isinstance(left, fx.Node) or value(left) is None or shape(left) != shape(node):
        return _Form(node)
    constant = number(right)
    if constant is not None:
        return _apply(word, _form(left, depth + 1), float(constant), node)
    if isinstance(right, fx.Node) and value(right) is not None and word in ("add", "sub"):
        return _join(word, _form(left, depth + 1), _form(right, depth + 1), node)
    return _Form(node)


def _apply(word: str, form: _Form, constant: float, node: fx.Node) -> _Form:
    steps = form.steps | {node}
    if word == "mul":
        return _Form(form.base, form.scale * constant, form.shift * constant, steps)
    if word == "div":
        return _Form(form.base, form.scale / constant, form.shift / constant, steps) if constant else _Form(node)
    return _Form(form.base, form.scale, form.shift + (constant if word == "add" else -constant), steps)


def _join(word: str, left: _Form, right: _Form, node: fx.Node) -> _Form:
    if left.base is not right.base:
        return _Form(node)
    sign = 1 if word == "add" else -1
    scale, shift = left.scale + sign * right.scale, left.shift + sign * right.shift
    if abs(scale) < 0.25 * max(abs(left.scale), abs(right.scale)):
        return _Form(node)  # a difference that nearly cancels is the reference's own affair
    return _Form(left.base, scale, shift, left.steps | right.steps | {node})


def change(node: fx.Node, edit: Editor) -> fx.Node | None:
    form = _form(node)
    after = (form.scale != 1.0) + (form.shift != 0.0)
    if len(form.steps) < 2 or after >= len(form.steps):
        return None
    if any(user not in form.steps for step in form.steps if step is not node for user in step.users):
        return None
    made = form.base
    if form.scale != 1.0:
        made = edit.call(operator.mul, made, form.scale)
    if form.shift != 0.0:
        made = edit.call(operator.add, made, form.shift)
    return made if made is not form.base else None


RULE = Rule(
    change,
    Finding(
        "Several multiplications and additions by constants follow each other, each a pass over the whole tensor.",
        "They are joined into one multiplication (and one addition where needed) with constants worked out beforehand.",
    ),
)
