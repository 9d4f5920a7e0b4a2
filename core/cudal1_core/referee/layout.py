"""Trees of arguments and results, described as data and laid out in an arena.

A tree is flattened by torch.utils._pytree; its leaves are tensors, Python scalars, strings and None.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from cudal1_core.referee.arena import ALIGNMENT, Arena

NUMBERS: dict[type, torch.dtype] = {float: torch.float64, complex: torch.complex128}
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
SCALARS = (bool, int, float, complex, str, type(None))


@dataclass(frozen=True, slots=True)
class Leaf:
    """One tensor of a tree. `offset` counts elements into its storage; `span` is the storage's bytes used."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def numel(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def span(self) -> int:
        """Elements between the first and the last one addressed, inclusive."""
        if self.numel == 0:
            return 0
        return 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))

    @property
    def nbytes(self) -> int:
        return self.span * self.dtype.itemsize

    def text(self) -> str:
        return f"{str(self.dtype).removeprefix('torch.')}[{', '.join(map(str, self.shape))}]"


def leaf_of(tensor: torch.Tensor, *, contiguous: bool = False) -> Leaf:
    shape = tuple(tensor.shape)
    if contiguous:
        strides, step = [], 1
        for size in reversed(shape):
            strides.append(step)
            step *= max(size, 1)
        return Leaf(tensor.dtype, shape, tuple(reversed(strides)))
    return Leaf(tensor.dtype, shape, tuple(tensor.stride()))


@dataclass(frozen=True)
class Tree:
    """A flattened tree: its structure, its leaves, and which of them are tensors (a Leaf) or plain values."""

    spec: Any  # TreeSpec
    leaves: tuple[Any, ...]

    @property
    def tensors(self) -> tuple[Leaf, ...]:
        return tuple(leaf for leaf in self.leaves if isinstance(leaf, Leaf))

    def build(self, tensors: list[torch.Tensor]) -> Any:
        source = iter(tensors)
        leaves = [next(source) if isinstance(leaf, Leaf) else leaf for leaf in self.leaves]
        return pytree.tree_unflatten(leaves, self.spec)


def resolved(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with its elements in memory as they read: torch can leave conjugation and negation for later.

    Methods are taken from the class: a candidate can hang its own on a tensor.
    """
    own = torch.Tensor
    return own.resolve_neg(own.resolve_conj(tensor)) if own.is_conj(tensor) or own.is_neg(tensor) else tensor


def describe(value: Any) -> tuple[Tree, list[torch.Tensor]]:
    """The tree of `value` and its tensors, in order."""
    leaves, spec = pytree.tree_flatten(value)
    leaves = [resolved(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    described = tuple(leaf_of(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves)
    return Tree(spec, described), tensors


@dataclass(frozen=True)
class Slots:
    """Where the tensors of `count` equal trees lie in one arena."""

    leaves: tuple[Leaf, ...]
    offsets: tuple[int, ...]  # bytes, of each leaf in the first tree
    stride: int  # bytes from one tree to the next
    count: int

    @property
    def nbytes(self) -> int:
        return self.stride * self.count

    def views(self, arena: Arena, index: int) -> list[torch.Tensor]:
        start = index * self.stride
        return [
            arena.view(start + offset, leaf.dtype, leaf.shape, leaf.strides)
            for leaf, offset in zip(self.leaves, self.offsets, strict=True)
        ]

    def stacked(self, arena: Arena, leaf_index: int, count: int) -> torch.Tensor:
        """One leaf of the first `count` trees as a single tensor, a tree a row; the leaf must be contiguous."""
        leaf = self.leaves[leaf_index]
        step = self.stride // leaf.dtype.itemsize
        inner = leaf.strides
        return arena.view(self.offsets[leaf_index], leaf.dtype, (count, *leaf.shape), (step, *inner))

    def stacked_spans(self, arena: Arena, leaf_index: int, count: int) -> torch.Tensor:
        """The memory of one leaf in the first `count` trees, gaps included, a tree a row."""
        leaf = self.leaves[leaf_index]
        step = self.stride // leaf.dtype.itemsize
        return arena.view(self.offsets[leaf_index], leaf.dtype, (count, leaf.span), (step, 1))

    def spans(self, arena: Arena, index: int) -> list[torch.Tensor]:
        """Flat views of the memory of each leaf, gaps included."""
        start = index * self.stride
        return [
            arena.view(start + offset, leaf.dtype, (leaf.span,), (1,))
            for leaf, offset in zip(self.leaves, self.offsets, strict=True)
        ]


def lay_out(leaves: tuple[Leaf, ...], count: int) -> Slots:
    offsets, position = [], 0
    for leaf in leaves:
        offsets.append(position)
        position += -(-max(leaf.nbytes, 1) // ALIGNMENT) * ALIGNMENT
    return Slots(leaves, tuple(offsets), max(position, ALIGNMENT), count)


def span_of(tensor: torch.Tensor, leaf: Leaf) -> torch.Tensor:
    """The memory under a tensor as one flat tensor, gaps included, shared with it."""
    return tensor.as_strided((leaf.span,), (1,), tensor.storage_offset())


def canonical(value: Any) -> Any:
    """The same tree with the keys of its dicts in sorted order, since a dict's order is no part of its form."""
    if type(value) is dict or isinstance(value, OrderedDict):
        return {key: canonical(value[key]) for key in sorted(value, key=str)}
    if type(value) in (list, tuple):
        return type(value)(map(canonical, value))
    return value


def leaves_of(value: Any) -> list[Any]:
    """Leaves of an output, in the order that forms and slots use."""
    return pytree.tree_leaves(canonical(value))


def tensors_of(value: Any, device: str) -> list[torch.Tensor]:
    """An output's tensors, in the order that slots use. A Python float or complex counts as one without dimensions,
    in float64 or complex128, so that it is compared by error too."""
    found = []
    for leaf in leaves_of(value):
        if isinstance(leaf, torch.Tensor):
            found.append(leaf)
        elif type(leaf) in NUMBERS:
            found.append(torch.tensor(leaf, dtype=NUMBERS[type(leaf)], device=device))
    return found


def as_bits(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements as integers, so that tensors of every dtype can be compared and chosen from."""
    return tensor.view(BITS.get(tensor.dtype.itemsize, tensor.dtype))


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype == other.dtype and torch.equal(as_bits(one), as_bits(other))


def form_of(value: Any) -> list[Any]:
    """A claim about the form of an output: JSON-able, one entry a leaf, then the structure.

    Tensors: ["tensor", dtype, shape, device type]; scalars: ["value", type, repr]; anything else:
    ["object", type name]. A subclass of Tensor is an object: its values may not exist yet.
    """
    leaves, spec = pytree.tree_flatten(canonical(value))
    return [[_leaf_form(leaf) for leaf in leaves[:4096]], _structure(spec)]


def _leaf_form(leaf: Any) -> list[Any]:
    if type(leaf) in (torch.Tensor, torch.nn.Parameter):
        if leaf.layout is not torch.strided:
            return ["object", f"Tensor with layout {leaf.layout}"]
        return ["tensor", str(leaf.dtype), list(leaf.shape), leaf.device.type]
    if type(leaf) in SCALARS:
        return ["value", type(leaf).__name__, repr(leaf)[:200]]
    kind = type(leaf)
    return ["object", f"{kind.__module__}.{kind.__qualname__}"[:200]]


def _structure(spec: Any) -> str:
    """The nesting as text: `(*,{a:*,b:*})`. Dict keys are sorted; a list and a tuple differ."""
    if spec.is_leaf():
        return "*"
    children = [_structure(child) for child in spec.children()] if callable(getattr(spec, "children", None)) else []
    kind = spec.type
    if kind in (tuple, list):
        inner = ",".join(children)
        return f"({inner})" if kind is tuple else f"[{inner}]"
    if isinstance(kind, type) and issubclass(kind, dict):
        pairs = sorted(zip(map(str, spec.context), children, strict=True))
        return "{" + ",".join(f"{key}:{child}" for key, child in pairs) + "}"
    # of a namedtuple torch keeps the class itself in the context
    named = spec.context if isinstance(spec.context, type) else kind
    return f"{named.__name__}({','.join(children)})"
