"""The reference run another way: compiled, or replayed from a CUDA graph. Imported by the runner of a baseline alone.

Outputs that lie in memory which the next call writes again are cloned, and that is part of a baseline's time: a
candidate must not reuse its outputs either.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from cudal1_core.referee.loading import load_file

WARM_UPS = 3  # calls before a capture, for libraries to choose their algorithms


def variant(path: str, class_name: str, name: str) -> type:
    """The reference's class, changed to run as the baseline `name`. Raises TypeError where it is no nn.Module."""
    module = load_file(Path(path), Path(path).stem, with_folder=True)
    base = getattr(module, class_name)
    if not (isinstance(base, type) and issubclass(base, torch.nn.Module)):
        raise TypeError(f"{class_name} is no torch.nn.Module, so torch.compile and CUDA graphs have no hold on it")
    if name == "cuda-graph":
        return _graphed(base)
    return _compiled(base, "reduce-overhead" if name == "compile-reduce-overhead" else None)


def _compiled(base: Any, mode: str | None) -> type:
    class Compiled(base):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.compile(mode=mode)

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            made = super().__call__(*args, **kwargs)
            return made if mode is None else _cloned(made)

    return Compiled


def _graphed(base: Any) -> type:
    class Graphed(base):  # type: ignore[misc]
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            graph = self.__dict__.get("_cudal1_graph")
            if graph is None:
                graph = self.__dict__["_cudal1_graph"] = _Graph(super().__call__, args, kwargs)
            return graph.replay(args, kwargs)

    return Graphed


class _Graph:
    """One captured call with inputs of its own."""

    def __init__(self, call: Any, args: Any, kwargs: Any) -> None:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        self.inputs = [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        own_args, own_kwargs = pytree.tree_unflatten(self.inputs, spec)
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                call(*own_args, **own_kwargs)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.made = call(*own_args, **own_kwargs)

    def replay(self, args: Any, kwargs: Any) -> Any:
        for own, given in zip(self.inputs, pytree.tree_leaves((args, kwargs)), strict=True):
            if isinstance(own, torch.Tensor):
                own.copy_(given)
        self.graph.replay()
        return _cloned(self.made)


def _cloned(made: Any) -> Any:
    return pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, made)
