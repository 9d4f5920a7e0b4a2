"""Turns the reference's text into a candidate's: keeps what the module needs, as the person wrote it.

Edits are made on lines, so comments and layout outside the changed functions stay.
"""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize
from dataclasses import dataclass, field

from cudal1_core.playbook.wrapping import wrapped

DROPPED = {"get_inputs", "get_init_inputs"}


@dataclass
class Edit:
    """Lines first..last (from 1, inclusive) become `text`; last = first - 1 inserts before `first`."""

    first: int
    last: int
    text: str


@dataclass
class Rewriter:
    """Collects edits of one reference file."""

    source: str
    tree: ast.Module
    model: str
    edits: list[Edit] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)  # needed import lines, if their name is not bound yet
    helpers: list[str] = field(default_factory=list)  # source placed before the module's class

    def class_of(self, name: str) -> ast.ClassDef | None:
        found = [n for n in self.tree.body if isinstance(n, ast.ClassDef) and n.name == name]
        return found[-1] if found else None

    def replace_body(self, function: ast.FunctionDef, statements: list[ast.stmt]) -> None:
        """The docstring stays."""
        first = function.body[0]
        keep = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(function.body) > 1
        start = function.body[1] if keep else first
        lines = [ast.unparse(ast.fix_missing_locations(s)) for s in statements]
        text = "\n".join(wrapped(line, start.col_offset) for line in lines)
        before = self.source.splitlines()[start.lineno - 1][: start.col_offset]
        if before.strip():  # `def forward(self, x): return ...` on one line
            pad = self.indent(function) + "    "
            text = before.rstrip() + "\n" + textwrap.indent(text, pad)
        else:
            text = textwrap.indent(text, before)
        self.edits.append(Edit(start.lineno, function.end_lineno or 0, text))

    def indent(self, node: ast.stmt) -> str:
        """The white space before a statement, tabs included."""
        line = self.source.splitlines()[node.lineno - 1]
        return line[: len(line) - len(line.lstrip())]

    def insert_before(self, line: int, text: str) -> None:
        self.edits.append(Edit(line, line - 1, text))

    def settings(self, line: int, *lines: str) -> None:
        """Statements before the class, each once."""
        done = {text for edit in self.edits for text in edit.text.split("\n")}
        new = [text for text in lines if text not in done]
        if new:
            self.insert_before(line, "\n".join(new) + "\n\n")

    def replace_line(self, line: int, text: str) -> None:
        self.edits.append(Edit(line, line, text))

    def text(self) -> str:
        """The candidate's source."""
        lines = self.source.splitlines()
        kept = needed_lines(self.tree, lines)
        target = self.class_of(self.model)
        if target is not None and self.helpers:
            line = min([target.lineno, *(d.lineno for d in target.decorator_list)])
            self.insert_before(line, "\n\n\n".join(h.strip("\n") for h in self.helpers) + "\n\n")
        replaced: dict[int, list[str]] = {}
        for edit in self.edits:
            replaced.setdefault(edit.first, []).append(edit.text)
            for row in range(edit.first, edit.last + 1):
                kept[row - 1] = False
        out: list[str] = []
        for row, text in enumerate(lines, 1):
            out += replaced.get(row, [])
            if kept[row - 1]:
                out.append(text)
        out += replaced.get(len(lines) + 1, [])
        return _tidy(self._with_imports(_rename("\n".join(out), self.model)))

    def _with_imports(self, text: str) -> str:
        bound = {
            alias.asname or alias.name.split(".")[0]
            for node in self.tree.body
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
        }
        missing = [line for line in dict.fromkeys(self.imports) if _bound_name(line) not in bound]
        if not missing:
            return text
        lines = text.splitlines()
        body = ast.parse(text).body
        imports = [n for n in body if isinstance(n, (ast.Import, ast.ImportFrom))]
        at = (imports[-1].end_lineno or 0) if imports else (body[0].lineno - 1 if body else 0)
        return "\n".join([*lines[:at], *missing, *lines[at:]])


def _bound_name(line: str) -> str:
    node = ast.parse(line).body[0]
    assert isinstance(node, (ast.Import, ast.ImportFrom))
    return node.names[0].asname or node.names[0].name.split(".")[0]


def _rename(text: str, model: str) -> str:
    """Every mention of the class by its bare name becomes ModelNew."""
    lines = text.splitlines(keepends=True)
    hits: list[tuple[int, int]] = []
    before = ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            if token.string == model and before != ".":
                hits.append(token.start)
            before = token.string
        elif token.type == tokenize.OP:
            before = token.string
    for row, column in reversed(hits):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + "ModelNew" + line[column + len(model) :]
    return "".join(lines)


def _tidy(text: str) -> str:
    out: list[str] = []
    blank = 0
    for line in text.splitlines():
        blank = blank + 1 if not line.strip() else 0
        if blank <= 2:
            out.append(line.rstrip())
    return "\n".join(out).strip("\n") + "\n"


def needed_lines(tree: ast.Module, lines: list[str]) -> list[bool]:
    """Which lines a candidate keeps: all but the input makers, the script part, and what only they need."""
    used: set[str] = set()
    keep: set[ast.stmt] = set()
    lasting = [n for n in tree.body if not _droppable(n)]
    pending = [n for n in lasting if _always(n)]
    while pending:
        node = pending.pop()
        keep.add(node)
        used |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        used |= _quoted_names(node)  # annotations in quotes
        pending += [n for n in lasting if n not in keep and n not in pending and _binds(n) & used]
    flags = [True] * len(lines)
    for node in tree.body:
        if node not in keep:
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            for line in range(first, (node.end_lineno or node.lineno) + 1):
                flags[line - 1] = False
            row = first - 2  # a comment right above belongs to what it stands above
            while row >= 0 and lines[row].startswith("#") and row > 0:
                flags[row] = False
                row -= 1
    return flags


def _quoted_names(node: ast.stmt) -> set[str]:
    texts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    return {text for text in texts if isinstance(text, str) and text.isidentifier()}


def _droppable(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name in DROPPED
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


def _always(node: ast.stmt) -> bool:
    """Imports, classes, docstrings, and settings such as torch.backends.x.y = z."""
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.ClassDef, ast.Try, ast.If, ast.With)):
        return True
    if isinstance(node, ast.Expr):
        call = node.value
        setting = isinstance(call, ast.Call) and ast.unparse(call.func).startswith("torch.")
        return isinstance(call, ast.Constant) or setting
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(isinstance(t, (ast.Attribute, ast.Subscript)) for t in targets)
    return False


def _binds(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
