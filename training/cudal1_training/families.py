"""Which references are of one family: they call the same operations, whatever their shapes.

Nothing here runs the code it reads. The split into what is trained on and what is held out goes by family, so
that a held-out task has no twin with other shapes among the others.
"""

from __future__ import annotations

import ast
import re

# Operations that every module uses and that tell nothing about what it computes.
_COMMON = frozenset(
    "module parameter sequential modulelist super init forward tensor rand randn randint empty zeros ones arange size "  # noqa: SIM905
    "shape view reshape contiguous len range int float print manual append to cuda cpu dim full device type".split()
)
_ROOTS = frozenset({"torch", "nn", "F", "functional"})


def family_of(source: str) -> str:
    """The operations named in the code of classes, sorted: "conv2d+relu". Without any, "other"."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "other"
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("get_"):
            found |= _operations(node)
    return "+".join(sorted(found)) or "other"


def _operations(part: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(part):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            found.add("matmul")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, root = node.func.attr, _root(node.func)
            if root in _ROOTS or (root not in ("self", "") and name in _METHODS):
                found.add(_plain(name))
    return found - _COMMON


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""


def _plain(name: str) -> str:
    """Modules, functions and in-place methods of one operation under one name: `BatchNorm2d`, `batch_norm`."""
    return re.sub(r"_(?=[a-z])|_$", "", name.lower())


_METHODS = frozenset(
    "matmul mm bmm sum mean max min softmax sigmoid tanh relu exp log pow sqrt abs clamp norm cumsum cumprod var std "  # noqa: SIM905
    "argmax argmin transpose permute add mul sub div masked_fill topk sort".split()
)
