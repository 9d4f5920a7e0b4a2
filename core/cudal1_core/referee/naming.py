"""Outputs that stay where they are: a runner names their addresses, and once it is stopped they are read there.

Nothing of it can compute between the last moment of the clock and the reading, so there is no copying to hide work
behind. Only for memory of the processor; on CUDA outputs are copied into an arena.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from cudal1_core.referee.arena import Arena
from cudal1_core.referee.layout import Leaf, Slots, resolved

WIDEST = 8  # times its elements that a tensor's memory may span to be read as a whole


@dataclass(frozen=True)
class Names:
    """A table in shared memory, a row an output tensor: its address, negative where its strides follow; 0 is none.

    The runner writes it and the trusted side reads it while the runner is stopped.
    """

    slots: Slots
    table: memoryview  # of int64
    starts: tuple[int, ...]  # of each leaf within the part of one slot
    width: int  # of the part of one slot

    @classmethod
    def over(cls, slots: Slots, arena: Arena) -> Names:
        starts, width = _columns(slots.leaves)
        return cls(slots, memoryview(arena.handle).cast("q"), starts, width)

    def write(self, slot: int, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Names the tensors of one output; those that must live until they are read.

        Methods are taken from the class: a candidate can hang its own on a tensor.
        """
        own = torch.Tensor
        held = []
        place = slot * self.width
        for start, leaf, tensor in zip(self.starts, self.slots.leaves, tensors, strict=False):
            row = place + start
            if tensor.dtype != leaf.dtype or tensor.shape != leaf.shape or tensor.layout is not torch.strided:
                self.table[row] = 0
                continue
            kept = resolved(tensor)
            if not own.is_contiguous(kept) and _span(leaf, own.stride(kept)) > WIDEST * leaf.numel:
                kept = own.contiguous(kept)
            if own.is_contiguous(kept):
                self.table[row] = own.data_ptr(kept)
            else:
                self.table[row] = -own.data_ptr(kept)
                for axis, stride in enumerate(own.stride(kept), row + 1):
                    self.table[axis] = stride
            held.append(kept)
        for start in self.starts[len(tensors) :]:
            self.table[place + start] = 0
        return held

    def read(self, memory: int, slot: int, into: Arena) -> None:
        """Copies the named tensors of one output into its slot. `memory` is the stopped runner's /proc/<pid>/mem.

        What has no name gets random bytes. Raises OSError where a named address cannot be read.
        """
        whole = into.data.numpy().data
        for start, offset, leaf in zip(self.starts, self.slots.offsets, self.slots.leaves, strict=True):
            row, begin = slot * self.width + start, slot * self.slots.stride + offset
            address = self.table[row]
            if not leaf.numel:
                continue
            if address > 0:
                _read(memory, whole[begin : begin + leaf.nbytes], address)
            elif address < 0:
                strides = tuple(self.table[row + 1 : row + 1 + len(leaf.shape)])
                span = _span(leaf, strides)
                if min(strides) < 0 or span > WIDEST * leaf.numel:
                    raise OSError(f"strides {strides} are out of the question")
                raw = torch.empty(span * leaf.dtype.itemsize, dtype=torch.uint8)
                _read(memory, raw.numpy().data, -address)
                view = into.view(begin, leaf.dtype, leaf.shape, leaf.strides)
                view.copy_(raw.view(leaf.dtype).as_strided(leaf.shape, strides))
            else:
                into.data[begin : begin + leaf.nbytes].random_()

    def peek(self, memory: int, slot: int, leaf: int, index: tuple[int, ...]) -> bytes:
        """One element of a named tensor as it is now, also while the runner runs. Raises OSError as `read` does."""
        row = slot * self.width + self.starts[leaf]
        address, kind = self.table[row], self.slots.leaves[leaf]
        strides = kind.strides if address >= 0 else tuple(self.table[row + 1 : row + 1 + len(kind.shape)])
        place = sum(number * stride for number, stride in zip(index, strides, strict=True))
        return os.pread(memory, kind.dtype.itemsize, abs(address) + place * kind.dtype.itemsize)


def table_bytes(slots: Slots) -> int:
    """What the table for all slots takes."""
    return 8 * slots.count * _columns(slots.leaves)[1]


def _columns(leaves: Sequence[Leaf]) -> tuple[tuple[int, ...], int]:
    starts, width = [], 0
    for leaf in leaves:
        starts.append(width)
        width += 1 + len(leaf.shape)
    return tuple(starts), width


def _span(leaf: Leaf, strides: Sequence[int]) -> int:
    return 1 + sum((size - 1) * stride for size, stride in zip(leaf.shape, strides, strict=True))


def _read(memory: int, into: memoryview, address: int) -> None:
    """Fills `into` from that address of another process."""
    while into:
        got = os.preadv(memory, [into], address)
        if not got:
            raise OSError("there is no memory at an address that was named")
        into, address = into[got:], address + got
