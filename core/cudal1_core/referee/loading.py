"""Importing a person's module file, as Python itself would, without running its `__main__` block."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cudal1_core.errors import UnjudgeableError

_NOT_BUILT = "Error building extension"
_FAULT = re.compile(r"\berror\b(?!\.)|undefined reference|\bfatal\b", re.IGNORECASE)  # of g++, clang, nvcc, ptxas, ld
_PACKAGE = "cudal1_user"  # stands for a folder without __init__.py, so that `from .helper import x` works


def load_file(path: Path, name: str, *, with_folder: bool) -> types.ModuleType:
    """Runs the file as a module. `with_folder` puts its folder on sys.path, as `python file.py` does."""
    package = None
    if with_folder:
        root = path.parent
        parts: list[str] = []
        while (root / "__init__.py").is_file():
            parts.insert(0, root.name)
            root = root.parent
        sys.path[:0] = [str(path.parent)] + ([str(root)] if parts else [])
        package = ".".join(parts) or _PACKAGE
        if not parts:
            holder = types.ModuleType(_PACKAGE)
            holder.__path__ = [str(path.parent)]
            sys.modules[_PACKAGE] = holder
        name = f"{package}.{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def helper_files(path: Path) -> dict[str, bytes]:
    """The user's own modules that the loaded reference imported, without the reference: relative path -> content.

    Only modules at or below the reference's folder (or its package's root) count.
    """
    root = path.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    found: dict[str, bytes] = {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not file or not file.endswith(".py"):
            continue
        where = Path(file)
        if where == path or not where.is_relative_to(root) or "site-packages" in where.parts:
            continue
        if any(where.is_relative_to(prefix) for prefix in (sys.prefix, sys.base_prefix)):
            continue
        if (module.__name__ or "").split(".")[0] in ("cudal1_core", "cudal1_tui"):
            continue
        found[str(where.relative_to(root))] = where.read_bytes()
        if where.parent == path.parent and root != path.parent:
            found[where.name] = where.read_bytes()
    return found


def find_model(module: types.ModuleType, wanted: str | None, path: Path) -> type:
    """The class to optimise: `wanted`, else `Model`, else the only nn.Module of the file."""
    import torch

    own = {
        name: value
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, torch.nn.Module) and value.__module__ == module.__name__
    }
    if wanted:
        value = getattr(module, wanted, None)
        if inspect.isclass(value) and issubclass(value, torch.nn.Module):
            return value
        raise _no_model(f"has no module class named {wanted}", own, module, path)
    value = getattr(module, "Model", None)
    if inspect.isclass(value):
        return value
    if len(own) == 1:
        return next(iter(own.values()))
    if own:
        raise _no_model("has several modules and none is called Model", own, module, path)
    raise _no_model("has no class Model", own, module, path)


def _no_model(what: str, own: Mapping[str, type], module: types.ModuleType, path: Path) -> UnjudgeableError:
    places = ", ".join(f"{name} (line {_line(value)})" for name, value in own.items())
    found = f"Found the modules {places}." if own else f"Found: {_public_names(module)}."
    return UnjudgeableError(
        "bad_reference",
        f"{path} {what}",
        f"{found} Expected: class Model(nn.Module), get_inputs() and get_init_inputs().",
        "Name the class with --model NAME." if own else "Write `class Model(nn.Module)` with a forward.",
    )


def input_functions(module: types.ModuleType, path: Path) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """get_inputs and get_init_inputs; the second may be missing and then gives nothing."""
    get_inputs = getattr(module, "get_inputs", None)
    if not callable(get_inputs):
        raise UnjudgeableError(
            "bad_reference",
            f"{path} has no get_inputs()",
            f"Found: {_public_names(module)}. The referee draws fresh inputs from it for every call.",
            "Write `def get_inputs():` that returns a list of forward's arguments, for example [torch.rand(16, 1024)].",
        )
    get_init_inputs = getattr(module, "get_init_inputs", None)
    return get_inputs, get_init_inputs if callable(get_init_inputs) else list


def arguments(value: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments from what get_inputs or get_init_inputs gave.

    Lists, tuples and generators are positional, a dict is keywords, any other single value is one argument.
    """
    if value is None:
        return (), {}
    if isinstance(value, Mapping):
        return (), dict(value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(value), {}
    if inspect.isgenerator(value) or (hasattr(value, "__iter__") and hasattr(value, "__next__")):
        return tuple(value), {}
    return (value,), {}


def error_line(error: BaseException, path: str) -> str:
    """`path:line: Type: text`, with the deepest line of `error` that lies in the file."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    message = error.msg if isinstance(error, SyntaxError) else found_by_compiler(str(error))
    where = f"{path}:{line}" if line else path
    return f"{where}: {type(error).__name__}: {message}"[:2000]


def found_by_compiler(message: str) -> str:
    """What torch tells of an extension that does not build, without the commands: a line for each fault."""
    if not message.startswith(_NOT_BUILT):
        return message
    faults = [line.strip() for line in message.splitlines()[1:] if _FAULT.search(line)]
    name = message.split(":", 1)[0]
    return f"{name}: " + "\n".join(faults) if faults else message


def _line(value: type) -> int:
    try:
        return inspect.getsourcelines(value)[1]
    except (OSError, TypeError):
        return 0


def _public_names(module: types.ModuleType) -> str:
    names = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    return ", ".join(names[:12]) or "no class and no function"
