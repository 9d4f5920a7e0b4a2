"""Builds and calls a candidate on fake tensors: the form must be the reference's. No numbers are computed."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _pytree as pytree

from cudal1_core.playbook.loading import PACKAGE, build, init_inputs
from cudal1_core.playbook.subject import Subject


def fits(subject: Subject, source: str) -> bool:
    """Same weights by name and shape, same outputs by structure, shape and dtype."""
    loaded = subject.loaded
    try:
        ast.parse(source)
        with _plain_compile(), torch.no_grad():
            module = types.ModuleType(f"{PACKAGE}.candidate")
            module.__package__ = PACKAGE
            sys.modules[module.__name__] = module
            exec(compile(source, "<candidate>", "exec"), module.__dict__)
            model = build(module.ModelNew, init_inputs(loaded.module), loaded.mode)
            if _weights(model) != _weights(subject.model):
                return False
            return not subject.runs_on_fakes or _same_form(subject, model)
    except Exception:
        return False


def _same_form(subject: Subject, model: torch.nn.Module) -> bool:
    with subject.loaded.mode:
        if subject.form is None:
            subject.form = _form(subject.model(*subject.loaded.inputs))
        return bool(_form(model(*subject.loaded.inputs)) == subject.form)


def _weights(model: torch.nn.Module) -> list[tuple[str, Any, Any]]:
    return [(name, tuple(t.shape), t.dtype) for name, t in model.state_dict().items()]


def _form(result: Any) -> tuple[Any, list[Any]]:
    leaves, spec = pytree.tree_flatten(result)
    return spec, [(tuple(x.shape), x.dtype) if isinstance(x, torch.Tensor) else x for x in leaves]


@contextmanager
def _plain_compile() -> Iterator[None]:
    """torch.compile and Module.to do nothing: the one is the referee's turn, the other does not take fake
    tensors."""
    original, convert = torch.compile, torch.nn.Module.to

    def plain(model: Any = None, **_: Any) -> Any:
        return model if model is not None else lambda function: function

    torch.compile = plain
    torch.nn.Module.to = lambda self, *_, **__: self  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.compile = original
        torch.nn.Module.to = convert  # type: ignore[method-assign]
