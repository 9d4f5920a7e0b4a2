"""Imports a reference file and builds its module and inputs without their memory.

Tensors are fake (shape, dtype and device only), so a module of any size costs next to nothing.
Where a constructor needs real numbers it is built for real and its weights are made fake afterwards.
"""

from __future__ import annotations

import contextlib
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

PACKAGE = "cudal1_reference"


class LoadError(Exception):
    """The reference file cannot be imported, or has no module of the wanted name."""


@dataclass
class Loaded:
    """An imported reference. `model` and `inputs` hold fake tensors of `mode`."""

    module: types.ModuleType
    mode: FakeTensorMode
    model: nn.Module
    inputs: tuple[Any, ...]


def import_file(path: Path, source: str) -> types.ModuleType:
    """Runs `source` as the file at `path`.

    Its neighbours are found as `python file.py` would find them; `from .neighbour import x` works too.
    """
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    package = types.ModuleType(PACKAGE)
    package.__path__ = [folder]
    sys.modules[PACKAGE] = package
    name = f"{PACKAGE}.{path.stem}"
    module = types.ModuleType(name)
    module.__file__, module.__package__ = str(path), PACKAGE
    sys.modules[name] = module
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except BaseException as error:
        raise LoadError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    return module


def load(path: Path, source: str, model_name: str) -> Loaded:
    """Raises LoadError."""
    module = import_file(path, source)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    try:
        cls = getattr(module, model_name)
        init = init_inputs(module)
        model = build(cls, init, mode)
        inputs = _inputs(module, mode)
    except Exception as error:
        raise LoadError(f"{model_name} of {path} cannot be built: {type(error).__name__}: {error}") from error
    return Loaded(module, mode, model, inputs)


def init_inputs(module: types.ModuleType) -> tuple[list[Any], dict[str, Any]]:
    values = module.get_init_inputs() if hasattr(module, "get_init_inputs") else []
    if isinstance(values, dict):
        return [], values
    values = list(values)
    if len(values) == 2 and isinstance(values[0], (list, tuple)) and isinstance(values[1], dict):
        return list(values[0]), values[1]
    return values, {}


def build(cls: type[nn.Module], init: tuple[list[Any], dict[str, Any]], mode: FakeTensorMode) -> nn.Module:
    """A module whose weights are fake tensors of `mode`."""
    args, kwargs = init
    with contextlib.suppress(Exception), mode:
        return cls(*args, **kwargs)
    model = cls(*args, **kwargs)
    for part in model.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                fake = mode.from_tensor(parameter.detach())
                part._parameters[name] = nn.Parameter(fake, parameter.requires_grad)
        for name, buffer in part._buffers.items():
            if buffer is not None:
                part._buffers[name] = mode.from_tensor(buffer)
    return model


def _inputs(module: types.ModuleType, mode: FakeTensorMode) -> tuple[Any, ...]:
    with contextlib.suppress(Exception), mode:
        return tuple(module.get_inputs())
    real = tuple(module.get_inputs())
    return pytree.tree_map_only(torch.Tensor, mode.from_tensor, real)  # type: ignore[no-any-return]
