"""Two poolings in a row, each over windows that do not overlap, are one pooling over larger windows."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import fx, nn

from cudal1_core.playbook.graphs import Editor, module_of, shape, single_use
from cudal1_core.playbook.rules import Rule
from cudal1_core.playbook.technique import Finding

_KINDS: dict[type[nn.Module], Any] = {
    nn.MaxPool1d: F.max_pool1d,
    nn.MaxPool2d: F.max_pool2d,
    nn.MaxPool3d: F.max_pool3d,
    nn.AvgPool1d: F.avg_pool1d,
    nn.AvgPool2d: F.avg_pool2d,
    nn.AvgPool3d: F.avg_pool3d,
}


def _window(module: nn.Module, rank: int) -> tuple[int, ...] | None:
    """The window of a pooling without overlap, padding, dilation or rounding up; else None."""
    kernel, stride = _spread(module.kernel_size, rank), _spread(module.stride, rank)
    if kernel != stride or any(_spread(module.padding, rank)) or module.ceil_mode:
        return None
    if isinstance(module, nn.modules.pooling._MaxPoolNd):
        plain = set(_spread(module.dilation, rank)) == {1} and not module.return_indices
    else:
        plain = getattr(module, "divisor_override", None) is None
    return kernel if plain else None


def _spread(item: Any, rank: int) -> tuple[int, ...]:
    return tuple(item) if isinstance(item, (tuple, list)) else (item,) * rank


def change(node: fx.Node, edit: Editor) -> fx.Node | None:
    outer = module_of(node, tuple(_KINDS))
    inner = module_of(node.args[0], type(outer)) if outer is not None and single_use(node.args[0]) else None
    if outer is None or inner is None:
        return None
    rank = int(type(outer).__name__[-2])
    first, second = _window(inner, rank), _window(outer, rank)
    if first is None or second is None:
        return None
    window = tuple(a * b for a, b in zip(first, second, strict=True))
    source = node.args[0].args[0]  # type: ignore[union-attr]
    if not isinstance(source, fx.Node) or len(shape(source)) != rank + 2:
        return None
    return edit.call(_KINDS[type(outer)], source, window[0] if len(set(window)) == 1 else window)


RULE = Rule(
    change,
    Finding(
        "Two poolings follow each other; the first writes a tensor that only the second reads.",
        "Their windows do not overlap, so one pooling whose window is the product of both gives the same result.",
    ),
)
