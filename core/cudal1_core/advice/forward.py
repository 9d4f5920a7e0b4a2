"""What `ModelNew.forward` returns, keeps and looks up."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cudal1_core.syntax import dotted, last_name

Found = Iterator[tuple[str, int]]

_CONSTANTS = {
    "zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones",
    "new_full", "new_empty", "empty_strided",
}  # fmt: skip
_MUTATE_NOT = {"requires_grad_"}
_IDENTITY = {"data_ptr", "_version", "storage_ptr"}
_LOOKUPS = {"get", "setdefault", "pop", "index"}


def in_forward(tree: ast.Module) -> Found:
    """Findings in the methods of every class of the module; what is returned counts in `forward` alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name != "__init__":
                    yield from _lookups(method)
                    yield from _counts(method)
                if isinstance(method, ast.FunctionDef) and method.name == "forward":
                    yield from _returns(method)
                    yield from _writes(method)


def _returns(forward: ast.FunctionDef) -> Found:
    values = _assigned(forward)
    used = _uses(forward)
    for node in _own_nodes(forward):
        if not isinstance(node, ast.Return) or node.value is None:
            continue
        parts = node.value.elts if isinstance(node.value, ast.Tuple | ast.List) else [node.value]
        for part in parts:
            source = part
            if isinstance(part, ast.Name) and len(values.get(part.id, ())) == 1:
                source = values[part.id][0]
                if _is_constant(source) and used.get(part.id, 0) > 1:
                    continue  # something else has it too, and may write to it
            if _is_constant(source):
                yield "constant_output", node.lineno
            elif _is_kept(part, values):
                yield "keeps_output", node.lineno


def _is_constant(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is not None
    return isinstance(node, ast.Call) and last_name(node.func) in _CONSTANTS


def _is_kept(node: ast.expr, values: dict[str, list[ast.expr]]) -> bool:
    """`self.out`, a slice of it, `self.out.relu_()`, `torch.mm(a, b, out=self.out)`, or a name that is one of them."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Call):
        if _in_place(node) and isinstance(node.func, ast.Attribute):
            return _is_kept(node.func.value, values)
        return any(keyword.arg == "out" and _is_kept(keyword.value, values) for keyword in node.keywords)
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.value.id == "self"
    if isinstance(node, ast.Name):
        return any(_is_kept(value, {}) for value in values.get(node.id, ()))
    return False


def _in_place(call: ast.Call) -> bool:
    last = last_name(call.func)
    return last.endswith("_") and not last.endswith("__") and last not in _MUTATE_NOT


def _lookups(method: ast.FunctionDef) -> Found:
    """Keys made of an address, an id, a version or a shape, also through a name."""
    keys = {
        name: kind for name, values in _assigned(method).items() for value in values if (kind := _key_kind(value, {}))
    }
    for node in (node for node in ast.walk(method) if isinstance(node, ast.expr)):
        looked: list[ast.expr] = []
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice | ast.Constant):
            looked = [node.slice] if _is_store(node.value) else []
        elif isinstance(node, ast.Compare):
            by_membership = any(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
            looked = [part for part in (node.left, *node.comparators) if by_membership or _identity(part, keys)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LOOKUPS:
            looked = node.args[:1] if _is_store(node.func.value) else []
        for part in looked:
            if kind := _key_kind(part, keys):
                yield kind, node.lineno


def _is_store(node: ast.expr) -> bool:
    """Something that outlives the call: an attribute or a name that the method did not make from its arguments."""
    return isinstance(node, ast.Attribute | ast.Name)


def _identity(node: ast.expr, keys: dict[str, str]) -> bool:
    return _key_kind(node, keys) == "caches_by_identity"


def _key_kind(node: ast.expr, keys: dict[str, str]) -> str:
    kinds = {_mark(part, keys) for part in ast.walk(node)}
    return next((kind for kind in ("caches_by_identity", "caches_by_shape") if kind in kinds), "")


def _mark(node: ast.AST, keys: dict[str, str]) -> str:
    if isinstance(node, ast.Attribute) and node.attr in _IDENTITY:
        return "caches_by_identity"
    if isinstance(node, ast.Call) and dotted(node.func) == "id":
        return "caches_by_identity"
    if isinstance(node, ast.Attribute) and node.attr == "shape":
        return "caches_by_shape"
    if isinstance(node, ast.Call) and last_name(node.func) == "size" and not node.args:
        return "caches_by_shape"
    return keys.get(node.id, "") if isinstance(node, ast.Name) else ""


def _counts(method: ast.FunctionDef) -> Found:
    """`self.calls += 1`."""
    for node in ast.walk(method):
        if (
            isinstance(node, ast.AugAssign)
            and isinstance(node.value, ast.Constant)
            and dotted(node.target).startswith("self.")
        ):
            yield "counts_calls", node.lineno


def _writes(forward: ast.FunctionDef) -> Found:
    """Into an argument: `x.relu_()`, `x[...] = `, `x += `, `out=x`."""
    names = {argument.arg for argument in (*forward.args.posonlyargs, *forward.args.args) if argument.arg != "self"}
    names -= {name for name, values in _assigned(forward).items() if values}  # bound anew: no longer the argument
    for node in _own_nodes(forward):
        if isinstance(node, ast.Call):
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            if _in_place(node) and isinstance(owner, ast.Name) and owner.id in names:
                yield "changes_inputs", node.lineno
            if any(k.arg == "out" and isinstance(k.value, ast.Name) and k.value.id in names for k in node.keywords):
                yield "changes_inputs", node.lineno
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id in names:
            yield "changes_inputs", node.lineno
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and dotted(target.value) in names:
                    yield "changes_inputs", node.lineno


def _assigned(function: ast.FunctionDef) -> dict[str, list[ast.expr]]:
    """Everything that each plain name is bound to by `=`."""
    found: dict[str, list[ast.expr]] = {}
    for node in _own_nodes(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return found


def _uses(function: ast.FunctionDef) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in _own_nodes(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found[node.id] = found.get(node.id, 0) + 1
    return found


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """All nodes below a function but those of functions inside it."""
    left: list[ast.AST] = list(function.body)
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            left.extend(ast.iter_child_nodes(node))
