"""A reference as the techniques see it: its source, its module, and what each of its forwards does."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import fx, nn

from cudal1_core.playbook.loading import Loaded, load
from cudal1_core.playbook.tracing import Call, SourceMap, Trace, Tracer, Untraceable, _module_calls

MOST_INSTANCES = 64


@dataclass(eq=False)
class Unit:
    """One `forward` of the reference file, with a trace for every module that runs it."""

    function: ast.FunctionDef
    owner: ast.ClassDef
    traces: tuple[Trace, ...]

    @property
    def movable(self) -> bool:
        """Its steps may be moved and joined: nothing is changed that anyone else sees, in tensors or in Python."""
        return all(trace.pure for trace in self.traces) and not _keeps_state(self.owner)


@dataclass
class Subject:
    path: Path
    source: str
    tree: ast.Module
    model_name: str
    device: str  # "cpu", "cuda:0": where the referee will run it
    loaded: Loaded
    units: tuple[Unit, ...] = ()
    whole: Trace | None = None  # the trace of the model itself; None where it cannot be traced
    why_untraced: str = ""
    runs_on_fakes: bool = True  # False where the model needs real numbers to run at all
    form: Any = None  # structure, shapes and dtypes of the outputs, once known
    calls: list[Call] = field(default_factory=list)

    @property
    def model(self) -> nn.Module:
        return self.loaded.model

    @property
    def on_cuda(self) -> bool:
        return self.device.startswith("cuda")

    def forward(self) -> ast.FunctionDef | None:
        """The model's own forward, where its class writes one."""
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef) and node.name == self.model_name:
                found = [f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "forward"]
                return found[-1] if found else None
        return None


def read(path: Path, source: str, model_name: str, device: str) -> Subject:
    """Raises LoadError."""
    tree = ast.parse(source)
    subject = Subject(path, source, tree, model_name, device, load(path, source, model_name))
    _watch(subject)
    _trace_all(subject)
    return subject


def _own(subject: Subject, module: nn.Module) -> bool:
    code = getattr(type(module).forward, "__code__", None)
    return code is not None and code.co_filename == str(subject.path)


def _watch(subject: Subject) -> None:
    """Runs the model once on fake tensors and keeps how each module of the file was called first."""
    seen: set[int] = set()

    def call(original: Callable[..., Any], module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if _own(subject, module) and id(module) not in seen:
            seen.add(id(module))
            subject.calls.append(Call(module, args, kwargs))
        return original(module, *args, **kwargs)

    try:
        with _module_calls(call), subject.loaded.mode, torch.no_grad():
            subject.model(*subject.loaded.inputs)
    except Exception as error:
        subject.why_untraced = f"{type(error).__name__}: {error}"
        subject.runs_on_fakes = False


def _trace_all(subject: Subject) -> None:
    source = SourceMap(str(subject.path), subject.tree)
    by_code: dict[CodeType, list[Call]] = {}
    for call in subject.calls:
        by_code.setdefault(type(call.module).forward.__code__, []).append(call)
    units = []
    for code, calls in by_code.items():
        place = _function_at(subject.tree, code)
        if place is None or len(calls) > MOST_INSTANCES:
            continue
        try:
            with subject.loaded.mode, torch.no_grad():
                traces = tuple(Tracer(call, source, _inlined(call.module)).trace() for call in calls)
        except Untraceable as error:
            subject.why_untraced = subject.why_untraced or str(error)
            continue
        if any(call.module is subject.model for call in calls):
            subject.whole = traces[[call.module is subject.model for call in calls].index(True)]
        units.append(Unit(place[0], place[1], traces))
    subject.units = tuple(units)


def _inlined(root: nn.Module) -> Callable[[nn.Module], bool]:
    """Containers are looked into where a fold may join two of their parts."""

    def inline(module: nn.Module) -> bool:
        if module is root:
            return True
        norms = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
        return type(module) is nn.Sequential and any(isinstance(part, norms) and not part.training for part in module)

    return inline


def _keeps_state(owner: ast.ClassDef) -> bool:
    """A method other than the constructor stores something on the module or in a global."""
    methods = [f for f in owner.body if isinstance(f, ast.FunctionDef) and f.name != "__init__" and f.args.args]
    for method in methods:
        me = method.args.args[0].arg
        for part in ast.walk(method):
            stores = isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Store)
            told = isinstance(part, ast.Expr) and isinstance(part.value, ast.Call)
            target = part if stores else part.value.func if told else None  # type: ignore[attr-defined]
            if isinstance(part, (ast.Global, ast.Nonlocal)) or (target is not None and _root(target) == me):
                return True
    return False


def _root(expression: ast.AST) -> str:
    while isinstance(expression, (ast.Attribute, ast.Subscript, ast.Call)):
        expression = expression.func if isinstance(expression, ast.Call) else expression.value
    return expression.id if isinstance(expression, ast.Name) else ""


def _function_at(tree: ast.Module, code: CodeType) -> tuple[ast.FunctionDef, ast.ClassDef] | None:
    for owner in ast.walk(tree):
        if not isinstance(owner, ast.ClassDef):
            continue
        for function in owner.body:
            if not isinstance(function, ast.FunctionDef) or function.name != code.co_name:
                continue
            first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
            if first <= code.co_firstlineno <= function.body[0].lineno:
                return function, owner
    return None


def copy_graph(graph: fx.Graph) -> fx.Graph:
    made = fx.Graph()
    mapping: dict[fx.Node, fx.Node] = {}
    output = made.graph_copy(graph, mapping)
    made.output(output)
    return made
