"""The one protocol of the playbook's techniques, and the draft they change.

A technique that changes steps of the traced graphs is a `GraphTechnique`; one that wraps or annotates the
module as
text is a `SourceTechnique`. Both say what they saw and what they do about it in a `Finding`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from torch import fx

from cudal1_core.playbook.graphs import Editor, prune
from cudal1_core.playbook.printing import Names, Printer, Unprintable
from cudal1_core.playbook.source import Rewriter
from cudal1_core.playbook.subject import Subject, Unit, copy_graph

Stage = Literal["algebra", "spelling", "layout", "memory", "wrap"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a technique saw in a reference, in words for a person."""

    analysis: str  # why the reference is slower than it could be
    design: str  # what the candidate does instead, and why it is the same function


class Technique(Protocol):
    @property
    def name(self) -> str: ...  # as shown in tables: "algebraic simplification"
    @property
    def stage(self) -> Stage: ...  # where it comes when several are combined
    @property
    def promise(self) -> int: ...  # tried earlier when higher

    def apply(self, draft: Draft) -> Finding | None:
        """Changes the draft; None where there is nothing to change."""
        ...


@dataclass
class Draft:
    """A candidate being made: graphs that techniques may change, and edits of the text."""

    subject: Subject
    rewriter: Rewriter
    graphs: dict[Unit, list[fx.Graph]] = field(default_factory=dict)
    changed: set[Unit] = field(default_factory=set)
    forward_name: str = "forward"  # what the module's computation is called, once it is wrapped

    @classmethod
    def of(cls, subject: Subject) -> Draft:
        return cls(subject, Rewriter(subject.source, subject.tree, subject.model_name))

    def rewrite(self, change: Callable[[fx.Node, Editor], fx.Node | None]) -> int:
        """Offers every step of every forward to `change`, which returns the step's replacement or None.

        Returns how many steps were replaced. A forward is left alone where instances would need different
        code.
        """
        replaced = 0
        for unit in self.subject.units:
            if not unit.movable:
                continue
            graphs = [copy_graph(g) for g in self.graphs.get(unit, [t.graph for t in unit.traces])]
            counts = [self._rewrite_graph(graph, change) for graph in graphs]
            if counts[0] == 0 or len(set(counts)) > 1:
                continue
            try:
                printed = [self.printed(unit, graphs, i)[0] for i in range(len(graphs))]
            except Unprintable:
                continue
            unrolled = len(printed[0]) > 40 + 3 * len(list(ast.walk(unit.function))) // 10
            if len({ast.unparse(_module(body)) for body in printed}) == 1 and not unrolled:
                self.graphs[unit] = graphs
                self.changed.add(unit)
                replaced += counts[0]
        return replaced

    def _rewrite_graph(self, graph: fx.Graph, change: Callable[[fx.Node, Editor], fx.Node | None]) -> int:
        count = 0
        prune(graph)
        for node in reversed(list(graph.nodes)):  # whole patterns are met before their parts
            if node.op not in ("call_function", "call_module") or node._erased:
                continue
            editor = Editor(node, self.subject.loaded.mode, self.subject.on_cuda)
            made = change(node, editor)
            if made is not None:
                editor.done(made)
                count += 1
            elif editor.made:
                prune(graph)
        return count

    def printed(self, unit: Unit, graphs: list[fx.Graph], index: int = 0) -> tuple[list[ast.stmt], Names]:
        arguments = [a.arg for a in unit.function.args.args]
        names = Names(vars(self.subject.loaded.module))
        taken = {arguments[0]} | {name for name in names.module if not name.startswith("__")}
        taken -= _stored(unit.function) - {arguments[0]}
        printer = Printer(graphs[index], unit.traces[index].module, arguments[0], names, taken)
        return printer.statements(), names

    def source(self) -> str:
        """The candidate's text. Raises Unprintable."""
        for unit in sorted(self.changed, key=lambda u: u.function.lineno):
            statements, names = self.printed(unit, self.graphs[unit])
            self.rewriter.replace_body(unit.function, statements)
            if names.wants_functional:
                self.rewriter.imports.append("import torch.nn.functional as F")
            self.rewriter.imports.append("import torch")
        return self.rewriter.text()


def _stored(function: ast.FunctionDef) -> set[str]:
    """Names the function assigns itself."""
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    return {node.id for node in names if isinstance(node.ctx, ast.Store)}


def _module(statements: list[ast.stmt]) -> ast.Module:
    return ast.fix_missing_locations(ast.Module(statements, []))
