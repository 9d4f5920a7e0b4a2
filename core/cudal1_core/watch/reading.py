"""What a file means to the watch: a fingerprint that comments and spacing do not change.

Only `ast` looks at the files; nothing of the person's is run.
"""

from __future__ import annotations

import ast
import hashlib
import tokenize
from dataclasses import dataclass
from pathlib import Path

from cudal1_core.accepted import is_ours

MOST_BYTES = 2_000_000  # larger Python files are data


class UnreadableError(Exception):
    """The file cannot be used as it stands; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A reference as it stands on disk."""

    fingerprint: str  # of the file and of its helpers, without comments, spacing and line numbers
    helpers: frozenset[Path]  # the person's own modules that it imports, directly or through others


def read(path: Path, class_name: str | None = None) -> Reading | None:
    """None where the file is no reference. Raises UnreadableError, and FileNotFoundError where it is gone."""
    tree = _parse(path)
    if not _is_reference(tree, class_name) or is_ours(path):
        return None
    parts, helpers = {path: tree}, _imported(path, tree)
    waiting = set(helpers)
    while waiting:
        helper = waiting.pop()
        if helper in parts:
            continue
        try:
            parts[helper] = _parse(helper)
        except FileNotFoundError:  # between two steps of a save
            continue
        found = _imported(helper, parts[helper]) - {path}
        waiting |= found - set(parts)
        helpers |= found
    digest = hashlib.sha256()
    for file in sorted(parts):
        digest.update(f"{file}\n{_meaning(parts[file])}\n".encode("utf-8", "surrogatepass"))
    return Reading(digest.hexdigest(), frozenset(helpers))


def may_be_reference(path: Path) -> bool:
    """Whether it is worth parsing; for folders of many files. False where it cannot be read."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return False
        content = path.read_bytes()
    except OSError:
        return False
    return b"get_inputs" in content and b"class " in content


def _parse(path: Path) -> ast.Module:
    try:
        with tokenize.open(path) as stream:  # follows a byte order mark and a coding line, as Python does
            source = stream.read()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableError(f"{path.name} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, SyntaxError) as error:
        raise UnreadableError(f"{path.name}: not UTF-8 text") from error
    try:
        return ast.parse(source)
    except SyntaxError as error:
        raise UnreadableError(f"{path.name}:{error.lineno or 1}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UnreadableError(f"{path.name}: {error}") from error


def _is_reference(tree: ast.Module, class_name: str | None) -> bool:
    """Whether the top level defines what a reference needs."""
    names: set[str] = set()
    modules = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
            modules += any("Module" in ast.unparse(base) for base in node.bases)
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names |= {alias.asname or alias.name for alias in node.names}
    model = class_name in names if class_name else "Model" in names or (modules > 0 and "ModelNew" not in names)
    return "get_inputs" in names and model


def _imported(path: Path, tree: ast.Module) -> set[Path]:
    """Files of the person's that the module imports, as Python would find them from the reference's folder."""
    found: set[Path] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found |= _files(path.parent, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = path.parent
            for _ in range(max(node.level - 1, 0)):
                base = base.parent
            found |= _files(base, node.module or "")
            for alias in node.names:  # a name may be a module of the package
                found |= _files(base, f"{node.module}.{alias.name}" if node.module else alias.name)
    return found - {path}


def _files(folder: Path, module: str) -> set[Path]:
    if not module or module.startswith("."):
        return set()
    found: set[Path] = set()
    for root in _roots(folder):
        place = root
        for part in module.split("."):
            place = place / part
            for file in (place.with_suffix(".py"), place / "__init__.py"):
                if file.is_file():
                    found.add(file)
        if found:
            break
    return found


def _roots(folder: Path) -> list[Path]:
    """The folder, and the root of the package that it belongs to."""
    root = folder
    while (root / "__init__.py").is_file():
        root = root.parent
    return [folder] if root == folder else [folder, root]


def _meaning(tree: ast.Module) -> str:
    return ast.dump(tree, annotate_fields=False, include_attributes=False)
