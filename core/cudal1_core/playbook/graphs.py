"""Reading and changing traced graphs: what a node is, and how to put a new step in an old one's place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from cudal1_core.playbook.ops import canonical


def op(node: Any) -> str:
    """The canonical operation of a node, or "" for anything else."""
    return str(node.meta.get("op", "")) if isinstance(node, fx.Node) else ""


def is_op(node: Any, *names: str) -> bool:
    return op(node) in names


def value(node: Any) -> torch.Tensor | None:
    found = node.meta.get("val") if isinstance(node, fx.Node) else None
    return found if isinstance(found, torch.Tensor) else None


def shape(node: Any) -> tuple[int, ...]:
    """Raises KeyError for a node that is no tensor."""
    tensor = value(node)
    if tensor is None:
        raise KeyError(node)
    return tuple(tensor.shape)


def is_float32(*nodes: Any) -> bool:
    tensors = [value(node) for node in nodes]
    return all(t is not None and t.dtype in (torch.float32, torch.float64) for t in tensors)


def argument(node: fx.Node, position: int, name: str, default: Any = None) -> Any:
    if name in node.kwargs:
        return node.kwargs[name]
    return node.args[position] if len(node.args) > position else default


def number(item: Any) -> float | int | None:
    """A Python number, else None. Booleans are no numbers here."""
    return item if isinstance(item, (int, float)) and not isinstance(item, bool) else None


def close(item: Any, wanted: float) -> bool:
    """Equal to about the seven digits people write such constants with."""
    found = number(item)
    return found is not None and abs(found - wanted) <= 2e-7 * abs(wanted)


def operands(node: fx.Node) -> tuple[Any, Any] | None:
    """Both operands of a binary operation without extras such as alpha or rounding_mode."""
    extras = {k: v for k, v in node.kwargs.items() if k != "other" and v is not None}
    values = [*node.args, *([node.kwargs["other"]] if "other" in node.kwargs else [])]
    return (values[0], values[1]) if len(values) == 2 and not extras else None


def either_way(node: Any, name: str) -> list[tuple[Any, Any]]:
    """The operands of a commutative operation in both orders; empty when it is another operation."""
    pair = operands(node) if is_op(node, name) else None
    return [pair, (pair[1], pair[0])] if pair else []


def module_of(node: Any, kind: type[nn.Module] | tuple[type[nn.Module], ...]) -> Any:
    """The module a node calls with one argument, if it is exactly of `kind`; else None."""
    if not isinstance(node, fx.Node) or node.op != "call_module" or len(node.args) != 1 or node.kwargs:
        return None
    kinds = kind if isinstance(kind, tuple) else (kind,)
    module = node.meta["module"]
    return module if type(module) in kinds and not _hooked(module) else None


def _hooked(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks or "parametrizations" in module._modules)


def single_use(node: Any) -> bool:
    return isinstance(node, fx.Node) and len(node.users) == 1


def dims(item: Any, rank: int) -> tuple[int, ...] | None:
    """Dimensions counted from 0, sorted; None where they are not plain numbers."""
    listed = [item] if isinstance(item, int) else item
    if not isinstance(listed, (list, tuple)) or not all(type(d) is int for d in listed):
        return None
    return tuple(sorted(d % rank for d in listed))


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a submodule, written by its name: `self.bn.eps`."""

    path: str
    value: Any


@dataclass
class Editor:
    """Puts new steps before `root`; each gets the fake value it would have."""

    root: fx.Node
    mode: FakeTensorMode
    on_cuda: bool = False
    made: int = 0

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> fx.Node:
        graph = self.root.graph
        step = canonical(function, args, kwargs)
        with graph.inserting_before(self.root):
            node = graph.create_node("call_function", function, tuple(args), dict(kwargs))
        with self.mode, torch.no_grad():
            result = function(*_values(args), **_values(kwargs))
        self.made += 1
        node.meta.update(op=step.op, val=result, stmt=self.root.meta.get("stmt"), inplace=step.inplace)
        node.meta["written_by"] = _origins(self.root)
        return node

    def setting(self, like: fx.Node, name: str) -> Setting:
        return Setting(f"{like.target}.{name}", getattr(like.meta["module"], name))

    def weight(self, like: fx.Node, name: str) -> fx.Node | None:
        """A weight of the module that `like` calls; None where the module has none of that name."""
        owner: nn.Module = like.meta["module"]
        tensor = getattr(owner, name)
        if tensor is None:
            return None
        graph = self.root.graph
        with graph.inserting_before(self.root):
            node = graph.create_node("get_attr", f"{like.target}.{name}")
        node.meta.update(op="get_attr", val=tensor)
        return node

    def done(self, node: fx.Node) -> None:
        """The root's users now use `node`; steps nobody needs any more are removed."""
        node.meta.setdefault("names", self.root.meta.get("names", self.root))
        self.root.replace_all_uses_with(node)
        prune(self.root.graph)


def _origins(root: fx.Node, depth: int = 6) -> tuple[fx.Node, ...]:
    """Steps of the reference whose constants a new step may repeat in their own spelling."""
    found = [root]
    if depth > 0:
        for node in root.all_input_nodes:
            found += _origins(node, depth - 1)
    return tuple(dict.fromkeys(found))[:40]


def _values(tree: Any) -> Any:
    if isinstance(tree, Setting):
        return tree.value
    if isinstance(tree, dict):
        return {key: _values(item) for key, item in tree.items()}
    if isinstance(tree, (tuple, list)):
        return type(tree)(_values(item) for item in tree)
    return tree.meta["val"] if isinstance(tree, fx.Node) else tree


def prune(graph: fx.Graph, spare: Sequence[fx.Node] = ()) -> None:
    """Removes steps without users, except those with an effect of their own."""
    for node in reversed(graph.nodes):
        idle = not node.users and node.op not in ("placeholder", "output") and node not in spare
        effect = node.meta.get("keep") and not _quiet(node)
        if idle and not effect and not node.meta.get("inplace"):
            graph.erase_node(node)


def _quiet(node: fx.Node) -> bool:
    """A module whose call leaves no trace: no statistics kept, no random numbers drawn."""
    module = node.meta.get("module")
    return module is not None and all(_leaves_no_trace(part) for part in module.modules())


def _leaves_no_trace(part: nn.Module) -> bool:
    if not type(part).__module__.startswith("torch.nn.") or _hooked(part):
        return False
    noisy = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._NormBase, nn.RReLU, nn.RNNBase)
    return not part.training or not isinstance(part, (*noisy, nn.MultiheadAttention))
