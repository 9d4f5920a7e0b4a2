"""What Python source says without being run: its tree, dotted names, and the native code in its strings."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def parse(source: str) -> ast.Module | None:
    """None for what is not Python."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def dotted(node: ast.AST) -> str:
    """`torch.cuda.Stream` of an attribute or a name; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts)) if isinstance(node, ast.Name) else ""


def last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def native_texts(tree: ast.Module) -> Iterator[ast.Constant]:
    """String constants that hold C++ or CUDA."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "{" in node.value and ";" in node.value:
            yield node
