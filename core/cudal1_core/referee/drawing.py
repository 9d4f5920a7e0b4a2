"""Fresh secret inputs that look like the reference's own.

A few real draws of `get_inputs` form a pool. Further sets are mixed from the pool on the device: every element
comes from one secretly chosen draw, which keeps what all draws share element by element (range, value set,
zero pattern). Nothing larger than an element is taken whole, since a candidate could remember what it once
computed from it. Where the draws share a property of rows (a sum, a norm, an order) or are symmetric, or where
their strides or plain numbers vary, no mixing is done and real draws are used.
"""

from __future__ import annotations

import pickle
import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from cudal1_core.errors import UnjudgeableError
from cudal1_core.referee.compare import comparable
from cudal1_core.referee.layout import Leaf, Tree, as_bits, describe, same_bits, span_of
from cudal1_core.referee.loading import arguments

POOL = 3
BEYOND = ("other signs", "another scale", "outliers")  # what no draw of the reference's has
SCALE, HALF_SCALE = 16.0, 4.0  # of another scale; the halves overflow sooner
OUTLIERS = 1 / 1000  # share of elements
FAR_OUT = 20.0  # root mean squares
LEAST_MIXED = 64  # elements from which three draws give enough sets; fewer are drawn anew, which costs little


@dataclass(frozen=True)
class Draw:
    """One set of arguments: the tree of (args, kwargs) and its tensors on the device."""

    tree: Tree
    tensors: list[torch.Tensor]

    def build(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.tree.build([t.clone(memory_format=torch.preserve_format) for t in self.tensors])  # type: ignore[no-any-return]


class InputSource:
    """Draws inputs; seeded from the operating system's entropy, never from anything a candidate knows."""

    def __init__(self, get_inputs: Callable[[], Any], device: str) -> None:
        self.get_inputs = get_inputs
        self.device = device
        self.form: Tree | None = None
        self.seed = secrets.randbits(63)
        self.random = random.Random(self.seed)
        self.generator = torch.Generator(device)
        self.generator.manual_seed(self.random.getrandbits(63))
        self.pool = [self.real() for _ in range(POOL)]
        self.tree = self.pool[0].tree
        self.scalars_vary = any(_scalars(draw.tree) != _scalars(self.tree) for draw in self.pool)
        self.modes = [self._mode(index) for index in range(len(self.pool[0].tensors))]
        self.frozen = self._nothing_varies()
        mixable = sum(leaf.numel for leaf, mode in zip(self.tree.tensors, self.modes, strict=True) if mode == "mix")
        self.mixes = "real" not in self.modes and not self.scalars_vary and (self.frozen or mixable >= LEAST_MIXED)

    def real(self) -> Draw:
        """A call of get_inputs under a fresh seed, moved to the device."""
        seed = self.random.getrandbits(63)
        torch.manual_seed(seed)
        random.seed(seed)
        try:
            import numpy

            numpy.random.seed(seed % (1 << 32))
        except ImportError:
            pass
        with torch.no_grad():
            tree, tensors = describe(arguments(self.get_inputs()))
        self._same_form(tree)
        return Draw(tree, [tensor.detach().to(self.device) for tensor in tensors])

    def _same_form(self, tree: Tree) -> None:
        """Raises UnjudgeableError where a draw differs in form from the first one."""
        first = self.form or tree
        self.form = first
        one, other = ([(leaf.dtype, leaf.shape) for leaf in t.tensors] for t in (first, tree))
        if one != other or first.spec != tree.spec:
            texts = (", ".join(leaf.text() for leaf in t.tensors) for t in (first, tree))
            raise UnjudgeableError(
                "unsupported",
                "get_inputs() returns something of another form each time",
                "First {}, then {}.".format(*texts),
                "Make every call return tensors of the same shapes and dtypes.",
            )

    def fresh(self) -> Draw:
        """A set nobody has seen, mixed on the device where that is sound."""
        if not self.mixes:
            return self.real()
        leaves = enumerate(self.tree.tensors)
        tensors = [self.mixed(index, 1).as_strided(leaf.shape, leaf.strides) for index, leaf in leaves]
        return Draw(self.tree, tensors)

    def nudged(self, draw: Draw) -> Draw:
        """The same set with one element of one tensor taken from another draw, where they differ."""
        other = self.fresh()
        order = [i for i, t in enumerate(draw.tensors) if t.numel() and t.dtype.is_floating_point]
        self.random.shuffle(order)
        for index in order:
            different = (as_bits(draw.tensors[index]) != as_bits(other.tensors[index])).flatten().nonzero()
            if len(different) and self.modes[index] == "mix":
                flat = int(different[self.random.randrange(len(different))])
                changed = draw.tensors[index].clone(memory_format=torch.preserve_format)
                position = torch.unravel_index(torch.tensor(flat), changed.shape)
                changed[position] = other.tensors[index][position]
                return Draw(draw.tree, [changed if i == index else t for i, t in enumerate(draw.tensors)])
        return other

    @property
    def goes_beyond(self) -> bool:
        """Whether there is anything to vary: constants of the task, such as masks, and integers stay as they are."""
        return any(self._varies(index) for index in range(len(self.tree.tensors)))

    def beyond(self, variation: str) -> Draw:
        """A set outside of what all draws share, by one of BEYOND."""
        draw = self.fresh()
        tensors = []
        for index, (leaf, tensor) in enumerate(zip(draw.tree.tensors, draw.tensors, strict=True)):
            if not self._varies(index) or not leaf.numel:
                tensors.append(tensor)
                continue
            span = self._moved(variation, span_of(tensor, leaf).clone())
            tensors.append(span.as_strided(leaf.shape, leaf.strides))
        return Draw(draw.tree, tensors)

    def _varies(self, index: int) -> bool:
        dtype = self.tree.tensors[index].dtype
        floating = dtype.is_floating_point and dtype.itemsize > 1
        return floating and (self.modes[index] != "same" or self.frozen)

    def _moved(self, variation: str, span: torch.Tensor) -> torch.Tensor:
        chance = torch.empty(span.shape, device=self.device).uniform_(generator=self.generator)
        if variation == "other signs":
            return torch.where(chance < 0.5, span, -span)
        if variation == "another scale":
            return span * (HALF_SCALE if span.dtype.itemsize == 2 else SCALE)
        size = FAR_OUT * span.float().square().mean().sqrt().to(span.dtype)
        here = chance < max(OUTLIERS, 1.0 / span.numel())
        return torch.where(here, torch.where(chance * 1e4 % 2 < 1, size, -size), span)

    def mixed(self, index: int, count: int) -> torch.Tensor:
        """The memory of `count` fresh tensors for leaf `index`, a row each; only where `mixes` holds."""
        draws, leaf = [draw.tensors[index] for draw in self.pool], self.tree.tensors[index]
        spans = [span_of(tensor, leaf) for tensor in draws]
        if self.modes[index] == "same":
            rows = spans[0].expand(count, leaf.span)
            return self._shake(rows) if self.frozen and leaf.dtype.is_floating_point else rows
        words = torch.empty((count, -(-leaf.span // 8)), dtype=torch.int64, device=self.device)
        words.random_(-(1 << 63), None, generator=self.generator)
        chance = words.view(torch.uint8)[:, : leaf.span]  # a random byte an element
        mixed = as_bits(spans[0]).expand(count, leaf.span)
        for number, span in enumerate(spans[1:], 1):
            mixed = torch.where(chance < 256 * number // POOL, mixed, as_bits(span))
        return mixed.view(leaf.dtype)

    def _shake(self, rows: torch.Tensor) -> torch.Tensor:
        """get_inputs always gives the same values: scale every element a little, so that calls still differ."""
        noise = torch.empty(rows.shape, device=self.device).normal_(generator=self.generator)
        if rows.dtype.itemsize == 1:
            return (rows.float() * (1 + 0.1 * noise)).to(rows.dtype)
        return rows * (1 + 0.1 * noise).to(rows.dtype)

    def _mode(self, index: int) -> str:
        draws = [draw.tensors[index] for draw in self.pool]
        first, leaf = draws[0], self.tree.tensors[index]
        if any(draw.tree.tensors[index] != leaf for draw in self.pool):
            return "real"
        if all(same_bits(first, other) for other in draws[1:]):
            return "same"
        if first.numel() != leaf.span:
            return "real" if leaf.span > first.numel() else "mix"
        draws = [comparable(draw) for draw in draws]
        first = draws[0]
        if first.dim() >= 2 and first.shape[-1] == first.shape[-2]:
            symmetric = all(torch.equal(d, d.transpose(-1, -2)) for d in draws)
            if symmetric:
                return "real"
        if first.dim() >= 1 and first.shape[-1] > 1 and first.is_contiguous() and not first.dtype.is_complex:
            if all(bool((d.diff(dim=-1) >= 0).all()) or bool((d.diff(dim=-1) <= 0).all()) for d in draws):
                return "real"
            if first.dtype.is_floating_point:
                sums = torch.stack([d.sum(-1, dtype=torch.float64).flatten() for d in draws])
                norms = torch.stack([d.double().pow(2).sum(-1).flatten() for d in draws])
                if any(float((s - s.flatten()[0]).abs().max()) <= 1e-4 * float(s.abs().max()) for s in (sums, norms)):
                    return "real"
        return "mix"

    def _nothing_varies(self) -> bool:
        floating = [i for i, leaf in enumerate(self.tree.tensors) if leaf.dtype.is_floating_point]
        return bool(floating) and all(self.modes[i] == "same" for i in range(len(self.modes)))


def _scalars(tree: Tree) -> list[bytes]:
    """What is no tensor, in a form that can be compared whatever it is (a NumPy array, an object)."""
    return [pickle.dumps(leaf) for leaf in tree.leaves if not isinstance(leaf, Leaf)]
