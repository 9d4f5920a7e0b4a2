"""Writes a traced graph as the readable body of `forward`.

Steps that one statement of the reference made stay one statement, names stay the reference's own where no
living
value is in the way, and constants stay `self.scale` where the reference wrote them so.
"""

from __future__ import annotations

import ast
import copy
import inspect
import keyword
import math
import operator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx, nn

from cudal1_core.playbook.graphs import Setting, op

LONGEST = 96  # characters of one statement before steps get a name of their own

_BINARY: dict[str, type[ast.operator]] = {
    "mul": ast.Mult,
    "add": ast.Add,
    "sub": ast.Sub,
    "div": ast.Div,
    "matmul": ast.MatMult,
    "pow": ast.Pow,
    "floordiv": ast.FloorDiv,
    "floor_divide": ast.FloorDiv,
    "mod": ast.Mod,
    "remainder": ast.Mod,
    "bitwise_and": ast.BitAnd,
    "__and__": ast.BitAnd,
    "bitwise_or": ast.BitOr,
    "__or__": ast.BitOr,
}
_COMPARE: dict[str, type[ast.cmpop]] = {
    "gt": ast.Gt,
    "lt": ast.Lt,
    "ge": ast.GtE,
    "le": ast.LtE,
    "eq": ast.Eq,
    "ne": ast.NotEq,
}
_UNARY: dict[str, type[ast.unaryop]] = {
    "neg": ast.USub,
    "bitwise_not": ast.Invert,
    "__invert__": ast.Invert,
}
_NAMES = {
    "matmul": "product",
    "mul": "scaled",
    "add": "total",
    "sub": "difference",
    "div": "scaled",
    "getitem": "part",
}


class Unprintable(Exception):
    """A step that has no plain spelling."""


@dataclass
class Names:
    """How the candidate's file spells modules it may use."""

    module: dict[str, Any]  # globals of the reference
    wants_functional: bool = False  # set where `F` has to be imported

    def functional(self) -> str:
        for name, item in self.module.items():
            if item is torch.nn.functional:
                return name
        self.wants_functional = True
        return "F"


@dataclass
class Printer:
    graph: fx.Graph
    module: nn.Module  # the instance whose forward this is
    self_name: str
    names: Names
    taken: set[str]  # names that the function must not assign
    bound: dict[str, fx.Node] = field(default_factory=dict)  # name -> the value it holds now
    called: dict[fx.Node, str] = field(default_factory=dict)
    inlined: dict[fx.Node, ast.expr] = field(default_factory=dict)
    left: dict[fx.Node, int] = field(default_factory=dict)  # uses still to come
    body: list[ast.stmt] = field(default_factory=list)

    def statements(self) -> list[ast.stmt]:
        """Raises Unprintable."""
        order = {node: index for index, node in enumerate(self.graph.nodes)}
        self.left = {node: max((order[user] for user in node.users), default=-1) for node in self.graph.nodes}
        for index, node in enumerate(self.graph.nodes):
            self._visit(node, index)
        return self.body

    def _visit(self, node: fx.Node, index: int) -> None:
        if node in self.called:
            return
        if node.op == "placeholder":
            self.called[node] = str(node.target)
            self.bound[str(node.target)] = node
            return
        if node.op == "output":
            self.body.append(ast.Return(self._argument(node.args[0], node)))
            return
        expression = self._expression(node)
        if self._goes_inline(node, expression):
            self.inlined[node] = expression
            return
        statement = self._unpack(node, expression, index)
        if statement is not None:
            pass
        elif not node.users:
            statement = ast.Expr(expression)
        else:
            name = self._name(node, index)
            self.called[node] = name
            self.bound[name] = node
            statement = ast.Assign([ast.Name(name, ast.Store())], expression)
        self.body.append(statement)

    def _goes_inline(self, node: fx.Node, expression: ast.expr) -> bool:
        if node.op == "get_attr":
            return True
        if len(node.users) != 1 or node.meta.get("inplace"):
            return False
        if node.meta.get("hint") and node.meta.get("op") != "size":
            return False
        user = next(iter(node.users))
        if sum(argument is node for argument in user.all_input_nodes) != 1 or _mentions(user, node) != 1:
            return False
        text = len(ast.unparse(expression))
        if user.op == "output":
            statement = node.meta.get("stmt")
            return isinstance(statement, ast.Return) and text <= LONGEST
        if node.meta.get("op") in ("size", "getitem"):
            return text <= 48
        if isinstance(node.meta.get("val"), int):
            return text <= 48
        same = node.meta.get("stmt") is not None and node.meta.get("stmt") is user.meta.get("stmt")
        return same and text <= LONGEST // 2

    def _unpack(self, node: fx.Node, expression: ast.expr, index: int) -> ast.stmt | None:
        """`q, k, v = ...` where the reference wrote so."""
        statement, result = node.meta.get("stmt"), node.meta.get("val")
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if not isinstance(target, ast.Tuple) or not isinstance(result, (tuple, list)):
            return None
        names = [part.id for part in target.elts if isinstance(part, ast.Name)]
        items = list(node.users)
        plain = all(op(item) == "getitem" and type(item.args[1]) is int for item in items)
        if len(names) != len(result) or not plain or len({item.args[1] for item in items}) != len(items):
            return None
        if len(set(names)) != len(names) or not all(self._free(name, index) for name in names):
            return None
        for item in items:
            name = names[item.args[1]]  # type: ignore[index]
            self.called[item], self.bound[name] = name, item
        return ast.Assign([copy.deepcopy(target)], expression)

    def _name(self, node: fx.Node, index: int) -> str:
        first = node.args[0] if node.args and isinstance(node.args[0], fx.Node) else node
        if node.meta.get("inplace") and self.bound.get(self.called.get(first, "")) is first:
            return self.called[first]  # the value that is written over keeps its name
        wanted = _statement_name(node) or _NAMES.get(op(node), op(node).strip("_"))
        if not wanted.isidentifier() or keyword.iskeyword(wanted):
            wanted = "value"
        name, count = wanted, 2
        while not self._free(name, index):
            name, count = f"{wanted}_{count}", count + 1
        return name

    def _free(self, name: str, index: int) -> bool:
        """Free when its value has no use after this statement; a use in this statement itself is fine."""
        if name in self.taken:
            return False
        holder = self.bound.get(name)
        if holder is None:
            return True
        waiting = [node for node in self.inlined if holder in _reached(node, self.inlined)]
        last = max([self.left[holder], *(self.left[node] for node in waiting)])
        return last <= index

    def _expression(self, node: fx.Node) -> ast.expr:
        if node.op == "get_attr":
            return self._attribute(str(node.target))
        if node.op == "call_module":
            return self._call(self._attribute(str(node.target)), node.args, node.kwargs, node)
        name, target = op(node), node.target
        style = node.meta.get("spelling") or _style(node)
        if style == "operator":
            return self._operator(name, node)
        if style == "property":
            return ast.Attribute(self._argument(node.args[0], node), name, ast.Load())
        kwargs = _spoken(target, node.kwargs)
        if style == "method":
            word = getattr(target, "__name__", name)
            return self._call(
                ast.Attribute(self._argument(node.args[0], node), word, ast.Load()),
                node.args[1:],
                kwargs,
                node,
            )
        return self._call(self._function(node), node.args, kwargs, node)

    def _operator(self, name: str, node: fx.Node) -> ast.expr:
        made = [self._argument(item, node) for item in node.args]
        origin = node.meta.get("origin")
        if name in ("mul", "add") and isinstance(origin, ast.BinOp) and isinstance(origin.left, ast.Constant):
            made.reverse()  # `2 * x` reaches torch as x * 2
        if name == "getitem":
            return ast.Subscript(made[0], made[1], ast.Load())
        if name in _BINARY and len(made) == 2:
            return ast.BinOp(made[0], _BINARY[name](), made[1])
        if name in _COMPARE and len(made) == 2:
            return ast.Compare(made[0], [_COMPARE[name]()], [made[1]])
        if name in _UNARY and len(made) == 1:
            return ast.UnaryOp(_UNARY[name](), made[0])
        raise Unprintable(f"the operator {name}")

    def _call(self, function: ast.expr, args: Any, kwargs: Any, node: fx.Node) -> ast.expr:
        return ast.Call(
            function,
            [self._argument(item, node) for item in args],
            [ast.keyword(key, self._argument(item, node)) for key, item in kwargs.items()],
        )

    def _function(self, node: fx.Node) -> ast.expr:
        origin = node.meta.get("origin")
        if isinstance(origin, ast.Call) and _is_global(origin.func, node):
            return copy.deepcopy(origin.func)
        target: Any = node.target
        word = target.__name__
        if getattr(torch, word, None) is target:
            return _dotted(f"torch.{word}")
        if getattr(torch.nn.functional, word, None) is target:
            return _dotted(f"{self.names.functional()}.{word}")
        raise Unprintable(f"the function {word}")

    def _attribute(self, path: str) -> ast.expr:
        made: ast.expr = ast.Name(self.self_name, ast.Load())
        for part in path.split("."):
            if part.isdigit():
                made = ast.Subscript(made, ast.Constant(int(part)), ast.Load())
            elif part.isidentifier():
                made = ast.Attribute(made, part, ast.Load())
            else:
                made = ast.Subscript(made, ast.Constant(part), ast.Load())
        return made

    def _argument(self, item: Any, node: fx.Node) -> ast.expr:
        if isinstance(item, fx.Node):
            if item in self.inlined:
                return copy.deepcopy(self.inlined[item])
            return ast.Name(self.called[item], ast.Load())
        if isinstance(item, (tuple, list)):
            made = [self._argument(part, node) for part in item]
            return ast.Tuple(made, ast.Load()) if isinstance(item, tuple) else ast.List(made, ast.Load())
        if isinstance(item, dict):
            return ast.Dict([ast.Constant(key) for key in item], [self._argument(part, node) for part in item.values()])
        if isinstance(item, slice):
            return ast.Slice(*(self._bound(part, node) for part in (item.start, item.stop, item.step)))
        return self._constant(item, node)

    def _bound(self, item: Any, node: fx.Node) -> ast.expr | None:
        return None if item is None else self._argument(item, node)

    def _constant(self, item: Any, node: fx.Node) -> ast.expr:
        if isinstance(item, Setting):
            return self._attribute(item.path)
        if isinstance(item, torch.device):
            return self._device()
        if isinstance(item, (int, float)) and not isinstance(item, bool):
            written = _as_written(item, node, self.self_name, self.module)
            if written is not None:
                return written
        if isinstance(item, float) and not math.isfinite(item):
            return ast.Call(ast.Name("float", ast.Load()), [ast.Constant(str(item))], [])
        if isinstance(item, (torch.dtype, torch.memory_format)):
            return _dotted(str(item))
        if item is None or item is ... or isinstance(item, (int, float, bool, str)):
            return _number(item)
        raise Unprintable(f"a constant of type {type(item).__name__}")

    def _device(self) -> ast.expr:
        """The device of some tensor at hand: all of a module's tensors are on one."""
        for node in self.graph.nodes:
            if node.op == "get_attr":
                return ast.Attribute(self._attribute(str(node.target)), "device", ast.Load())
        for name, holder in self.bound.items():
            if holder.op == "placeholder":
                return _dotted(f"{name}.device")
        raise Unprintable("a device")


def _number(item: Any) -> ast.expr:
    if isinstance(item, (int, float)) and not isinstance(item, bool) and item < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-item))
    return ast.Constant(item)


def _mentions(user: fx.Node, node: fx.Node) -> int:
    count = 0

    def see(found: fx.Node) -> fx.Node:
        nonlocal count
        count += found is node
        return found

    fx.node.map_arg((user.args, user.kwargs), see)
    return count


def _reached(node: fx.Node, inlined: dict[fx.Node, ast.expr]) -> set[fx.Node]:
    """Named values inside an inlined expression."""
    found: set[fx.Node] = set()
    for item in node.all_input_nodes:
        found |= _reached(item, inlined) if item in inlined else {item}
    return found


def _dotted(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _statement_name(node: fx.Node) -> str | None:
    """The name the reference gave this value: the target of the statement whose whole value it was."""
    if node.meta.get("hint"):
        return str(node.meta["hint"])
    source = node.meta.get("names", node)
    statement, origin = source.meta.get("stmt"), source.meta.get("origin")
    if isinstance(statement, ast.Return) and (statement.value is origin or "names" in node.meta):
        return "out"
    if origin is None and "names" not in node.meta and not isinstance(statement, ast.AugAssign):
        return None
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Name) and (origin is None or statement.value is origin):
            return target.id
    return None


def _style(node: fx.Node) -> str:
    origin, target = node.meta.get("origin"), node.target
    word = getattr(target, "__name__", "")
    if word == "__get__":
        return "property"
    if isinstance(origin, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript)):
        return "operator"
    if isinstance(origin, ast.Call) and isinstance(origin.func, ast.Attribute):
        return "function" if _is_global(origin.func, node) else "method"
    if isinstance(origin, ast.Call):
        return "function"
    if getattr(operator, word, None) is target or word == "__getitem__":
        return "operator"
    if isinstance(target, type(torch.Tensor.relu)) or "Tensor" in getattr(target, "__qualname__", ""):
        return "method"
    return "function"


def _is_global(expression: ast.expr, node: fx.Node) -> bool:
    while isinstance(expression, ast.Attribute):
        expression = expression.value
    if not isinstance(expression, ast.Name) or expression.id in node.meta.get("locals", ()):
        return False
    return expression.id in node.meta["scope"][0]


def _spoken(target: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments worth writing: not private ones, not those at their default."""
    try:
        parameters = inspect.signature(target).parameters
    except (TypeError, ValueError):
        return dict(kwargs)
    usual = {name: p.default for name, p in parameters.items()}
    return {k: v for k, v in kwargs.items() if not k.startswith("_") and not (k in usual and usual[k] is v)}


def _as_written(item: Any, node: fx.Node, self_name: str, module: nn.Module) -> ast.expr | None:
    """The reference's own spelling of a constant, if it means the same outside its function's locals."""
    for other in node.meta.get("written_by", (node,)):
        written = _written_at(item, other, self_name, module)
        if written is not None:
            return written
    return None


def _written_at(item: Any, node: fx.Node, self_name: str, module: nn.Module) -> ast.expr | None:
    origin = node.meta.get("origin")
    if not isinstance(origin, (ast.Call, ast.BinOp)):
        return None
    parts = (
        [*origin.args, *(k.value for k in origin.keywords)]
        if isinstance(origin, ast.Call)
        else [origin.left, origin.right]
    )
    scope, owner = node.meta["scope"]
    for part in parts:
        if owner is not module and any(isinstance(n, ast.Name) and n.id == self_name for n in ast.walk(part)):
            continue
        if isinstance(part, ast.Constant) or not _free_of_locals(part, node, self_name):
            continue
        try:
            found = eval(compile(ast.Expression(part), "<constant>", "eval"), {**scope, self_name: owner})
        except Exception:
            continue
        if type(found) is type(item) and found == item:
            return copy.deepcopy(part)
    return None


def _free_of_locals(expression: ast.expr, node: fx.Node, self_name: str) -> bool:
    allowed = (
        ast.Constant,
        ast.Name,
        ast.Attribute,
        ast.BinOp,
        ast.UnaryOp,
        ast.Call,
        ast.operator,
        ast.unaryop,
    )
    hidden = node.meta.get("locals", frozenset())
    for part in ast.walk(expression):
        if not isinstance(part, (*allowed, ast.expr_context)):
            return False
        if isinstance(part, ast.Call) and not ast.unparse(part.func).startswith("math."):
            return False
        if isinstance(part, ast.Name) and part.id in hidden and part.id != self_name:
            return False
    return True
