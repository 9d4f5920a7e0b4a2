"""Records what a `forward` does as a torch.fx graph, with shapes and with the source of every step.

The forward runs on fake tensors under a TorchFunctionMode, so Python control flow over shapes and
attributes just
runs. Sizes are integers that remember where they came from (`TracedInt`), so a graph is not tied to a
batch size.
Node meta: `op` (one name for functions, methods and operators alike), `val` (fake result), `origin`
(ast.expr that
made it), `spelling` (how it was written).
"""

from __future__ import annotations

import ast
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import Parameter, signature
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from torch import fx, nn
from torch.overrides import TorchFunctionMode

from cudal1_core.playbook.ops import canonical

MOST_NODES = 2000
_OURS = (str(Path(torch.__file__).parent), str(Path(__file__).parent), "<")


class Untraceable(Exception):
    """This forward cannot be written as a straight line of tensor operations."""


class TracedInt(int):
    """A size that knows the graph node it is computed by."""

    node: fx.Node

    @staticmethod
    def make(value: int, node: fx.Node) -> TracedInt:
        made = TracedInt(value)
        made.node = node
        node.meta["val"] = value
        return made


def _arithmetic(name: str, function: Callable[[int, int], int], swapped: bool) -> None:
    plain = getattr(int, name)

    def method(self: TracedInt, other: Any) -> Any:
        result = plain(self, other)
        if not isinstance(result, int) or isinstance(result, bool):
            return result
        mine, theirs = self.node, getattr(other, "node", other)
        args = (theirs, mine) if swapped else (mine, theirs)
        node = self.node.graph.create_node("call_function", function, args)
        node.meta.update(op=function.__name__, spelling="operator", stmt=self.node.meta.get("stmt"))
        return TracedInt.make(result, node)

    setattr(TracedInt, name, method)


for _word, _function in {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
}.items():
    _arithmetic(f"__{_word}__", _function, swapped=False)
    _arithmetic(f"__r{_word}__", _function, swapped=True)


@dataclass
class SourceMap:
    """Finds the expression of the reference file that a running frame is at."""

    path: str
    tree: ast.Module
    spans: dict[tuple[int, int, int, int], ast.expr] = field(default_factory=dict)
    statements: dict[ast.expr, ast.stmt] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for statement in ast.walk(self.tree):
            if isinstance(statement, ast.stmt):
                for child in _own_expressions(statement):
                    end = (child.end_lineno or 0, child.end_col_offset or 0)
                    self.spans.setdefault((child.lineno, end[0], child.col_offset, end[1]), child)
                    self.statements[child] = statement

    def find(self, frame: FrameType | None) -> tuple[ast.expr | None, FrameType | None]:
        foreign = False  # a helper in another file made the step: its spelling means nothing here
        while frame is not None and frame.f_code.co_filename != self.path:
            foreign = foreign or not frame.f_code.co_filename.startswith(_OURS)
            frame = frame.f_back
        if frame is None or foreign:
            return None, frame
        positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
        return self.spans.get((positions[0], positions[1], positions[2], positions[3])), frame  # type: ignore[arg-type]


def _own_expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr):
            yield from (node for node in ast.walk(child) if isinstance(node, ast.expr))


@dataclass
class Trace:
    """One forward of one module instance."""

    module: nn.Module
    code: CodeType
    graph: fx.Graph
    pure: bool  # no in-place change and no random numbers: steps may be moved and joined


@dataclass
class Call:
    """A module of the reference file as it was called: what a trace starts from."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Tracer(TorchFunctionMode):
    """Traces `call.module.forward`; submodules are single steps unless `inline` says otherwise."""

    def __init__(self, call: Call, source: SourceMap, inline: Callable[[nn.Module], bool]) -> None:
        super().__init__()
        self.call, self.source, self.inline = call, source, inline
        self.graph = fx.Graph()
        self.nodes: dict[int, fx.Node] = {}
        self.inside = False  # a submodule that is one step is running
        self.alive: list[Any] = []  # ids stay unique while their objects live
        self.items: dict[int, tuple[fx.Node, int]] = {}
        self.sizes: dict[tuple[fx.Node, int], TracedInt] = {}
        root = call.module
        self.paths = {id(m): name for name, m in root.named_modules(remove_duplicate=False)}
        self.weights = {id(p): name for name, p in [*root.named_parameters(), *root.named_buffers()]}

    def trace(self) -> Trace:
        """Raises Untraceable."""
        forward = type(self.call.module).forward
        arguments = self._placeholders(forward)
        try:
            with _module_calls(self._module_call), self:
                result = forward(self.call.module, *arguments)
        except Untraceable:
            raise
        except Exception as error:
            raise Untraceable(f"{type(error).__name__}: {error}") from error
        self.graph.output(self._to_node(result, output=True))
        pure = all(_harmless(node) for node in self.graph.nodes if node.meta.get("inplace"))
        return Trace(self.call.module, forward.__code__, self.graph, pure)

    def _placeholders(self, forward: Callable[..., Any]) -> list[Any]:
        sig = signature(forward)
        if any(p.kind not in (Parameter.POSITIONAL_OR_KEYWORD,) for p in sig.parameters.values()):
            raise Untraceable("star arguments")
        bound = sig.bind(self.call.module, *self.call.args, **self.call.kwargs)
        values: list[Any] = []
        for name, value in list(bound.arguments.items())[1:]:
            if isinstance(value, torch.Tensor):
                node = self.graph.placeholder(name)
                node.meta.update(op="placeholder", val=value)
                # a fresh object for every argument, so that one tensor given twice stays two values
                twice = id(value) in self.nodes or id(value) in self.weights
                values.append(self._remember(value.view_as(value) if twice else value, node))
            elif type(value) is int:
                node = self.graph.placeholder(name)
                node.meta["op"] = "placeholder"
                values.append(TracedInt.make(value, node))
            elif value is not None or sig.parameters[name].default is not None:
                raise Untraceable(f"argument {name} is not a tensor")
            else:
                values.append(value)
        return values

    def _remember(self, value: Any, node: fx.Node) -> Any:
        if isinstance(value, torch.Tensor):
            self.nodes[id(value)] = node
            self.alive.append(value)
        elif isinstance(value, (tuple, list)) and all(isinstance(v, torch.Tensor) for v in value):
            for index, item in enumerate(value):
                self.items[id(item)] = (node, index)
                self.alive.append(item)
        return value

    def _to_node(self, value: Any, output: bool = False) -> Any:
        if isinstance(value, TracedInt):
            return value.node
        if isinstance(value, torch.Tensor):
            return self._tensor_node(value)
        if isinstance(value, dict):
            return {key: self._to_node(item, output) for key, item in value.items()}
        if isinstance(value, (tuple, list)):
            if type(value) not in (tuple, list, torch.Size) and output:
                raise Untraceable("a named tuple is returned")
            made = [self._to_node(item, output) for item in value]
            return made if isinstance(value, list) else tuple(made)
        if isinstance(value, slice):
            return slice(self._to_node(value.start), self._to_node(value.stop), self._to_node(value.step))
        if value is None or isinstance(value, _PLAIN):
            return value
        raise Untraceable(f"a value of type {type(value).__name__}")

    def _tensor_node(self, value: torch.Tensor) -> fx.Node:
        key = id(value)
        if key in self.nodes:
            return self.nodes[key]
        if key in self.items:
            parent, index = self.items[key]
            node = self.graph.create_node("call_function", operator.getitem, (parent, index))
            node.meta.update(op="getitem", val=value, spelling="operator", stmt=parent.meta.get("stmt"))
        elif key in self.weights:
            node = self.graph.create_node("get_attr", self.weights[key])
            node.meta.update(op="get_attr", val=value)
        else:
            raise Untraceable("a tensor from outside the module")
        self.nodes[key] = node
        return node

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        step = canonical(func, args, kwargs)
        if step.query:
            return self._query(step.op, func, args, kwargs)
        result = func(*args, **kwargs)
        if not _holds_tensors(result):
            return result
        node = self._record(step.op, func, step.args, step.kwargs, result)
        node.meta.update(inplace=step.inplace, keep=step.random)
        return result

    def _query(self, op: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = func(*args, **kwargs)
        if not isinstance(args[0], torch.Tensor) or op not in ("size", "shape"):
            return result
        node = self._tensor_node(args[0])
        if isinstance(result, int):
            return self._size(node, args[1] if len(args) > 1 else kwargs["dim"], result)
        return tuple(self._size(node, index, size) for index, size in enumerate(result))

    def _size(self, node: fx.Node, index: int, size: int) -> TracedInt:
        if (node, index) not in self.sizes:
            made = self.graph.create_node("call_function", torch.Tensor.size, (node, index))
            origin, _ = self.source.find(sys._getframe(1))
            statement = self.source.statements.get(origin) if origin is not None else None
            made.meta.update(op="size", spelling="method", hint=_size_name(statement, origin, index))
            self.sizes[node, index] = TracedInt.make(size, made)
        return self.sizes[node, index]

    def _record(self, op: str, func: Any, args: Any, kwargs: Any, result: Any, module: str | None = None) -> fx.Node:
        if len(self.graph.nodes) > MOST_NODES:
            raise Untraceable("too many steps")
        origin, frame = self.source.find(sys._getframe(1))
        if frame is None:
            raise Untraceable("a step outside the reference file")
        node = self.graph.create_node(
            "call_module" if module is not None else "call_function",
            module if module is not None else func,
            self._to_node(tuple(args)),
            self._to_node(dict(kwargs)),
        )
        node.meta.update(op=op, val=result, origin=origin, scope=(frame.f_globals, frame.f_locals.get("self")))
        node.meta["locals"] = frozenset(frame.f_code.co_varnames)
        node.meta["stmt"] = self.source.statements.get(origin) if origin is not None else None
        self._remember(result, node)
        return node

    def _module_call(self, original: Callable[..., Any], module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if self.inside or self.inline(module):
            return original(module, *args, **kwargs)
        path = self.paths.get(id(module))
        if path is None:
            raise Untraceable("a module made inside forward")
        self.inside = True
        try:
            with torch._C.DisableTorchFunction():
                result = original(module, *args, **kwargs)
        finally:
            self.inside = False
        node = self._record("module", None, args, kwargs, result, module=path)
        node.meta.update(module=module, inplace=bool(getattr(module, "inplace", False)), keep=True)
        return result


def _size_name(statement: ast.stmt | None, origin: ast.expr | None, index: int) -> str | None:
    """The name a size is given in `B, T, C = x.shape` or `n = x.size(0)`."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if isinstance(target, ast.Tuple) and statement.value is origin and index < len(target.elts):
        target = target.elts[index]
    return target.id if isinstance(target, ast.Name) else None


_PLAIN = (
    int,
    float,
    bool,
    complex,
    str,
    torch.dtype,
    torch.device,
    torch.memory_format,
    torch.layout,
    type(...),
)


_MAY_ALIAS = {
    "view",
    "reshape",
    "getitem",
    "transpose",
    "permute",
    "T",
    "t",
    "mT",
    "contiguous",
    "expand",
    "to",
}
_MAY_ALIAS |= {
    "squeeze",
    "unsqueeze",
    "flatten",
    "unbind",
    "chunk",
    "split",
    "narrow",
    "select",
    "float",
    "detach",
}
_MAY_ALIAS |= {"view_as", "expand_as", "unflatten", "diagonal", "movedim", "type", "dropout"}
_FRESH_MODULES = (
    nn.Linear,
    nn.modules.conv._ConvNd,
    nn.modules.batchnorm._NormBase,
    nn.GroupNorm,
    nn.LayerNorm,
)


def _harmless(node: fx.Node) -> bool:
    """An in-place change of a value nobody else sees is as good as a new value."""
    target = node.args[0] if node.args else None
    if not isinstance(target, fx.Node) or target.op in ("placeholder", "get_attr") or len(target.users) != 1:
        return False
    if target.op == "call_module":
        return isinstance(target.meta["module"], _FRESH_MODULES)
    if target.meta["op"] == "__setitem__" or target.meta["op"] in _MAY_ALIAS:
        return False
    return not target.meta.get("inplace") or _harmless(target)


def _holds_tensors(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_holds_tensors(item) for item in value)
    return isinstance(value, torch.Tensor)


@contextmanager
def _module_calls(handler: Callable[..., Any]) -> Iterator[None]:
    original = nn.Module.__call__

    def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        return handler(original, module, *args, **kwargs)

    nn.Module.__call__ = call  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module.__call__ = original  # type: ignore[method-assign]
