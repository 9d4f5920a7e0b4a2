"""The inputs of a block, laid out as in a runner's arena, in memory that only the trusted side has.

They are drawn before the clock starts and reach the arenas of both sides from here, so that both get the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from cudal1_core.referee import arena as arenas
from cudal1_core.referee.drawing import Draw, InputSource
from cudal1_core.referee.layout import Slots, Tree, span_of

CHUNK = 1 << 27  # elements drawn at a time


class Stage:
    """Holds the inputs of up to `slots.count` calls."""

    def __init__(self, slots: Slots, device: str) -> None:
        self.slots = slots
        self.arena = arenas.alone(device, max(slots.nbytes, 1))

    def put(self, draws: Sequence[Draw]) -> None:
        """Lays these sets down, the first in slot 0."""
        for number, draw in enumerate(draws):
            views, spans = self.slots.views(self.arena, number), self.slots.spans(self.arena, number)
            for leaf, view, span, tensor in zip(self.slots.leaves, views, spans, draw.tensors, strict=True):
                if leaf.span < leaf.numel:
                    span.copy_(span_of(tensor, leaf))
                else:
                    view.copy_(tensor)

    def fill(self, source: InputSource, count: int) -> Sequence[Draw]:
        """Fresh sets in the first `count` slots; their tensors are views that the next filling overwrites."""
        if not source.mixes:
            draws = [source.real() for _ in range(count)]
            self.put(draws)
            return draws
        for index, leaf in enumerate(self.slots.leaves):
            rows = self.slots.stacked_spans(self.arena, index, count)
            step = max(1, CHUNK // max(leaf.span, 1))
            for start in range(0, count, step):
                part = rows[start : start + step]
                part.copy_(source.mixed(index, len(part)))
        return Staged(self, source.tree, count)

    def part(self, slots: Sequence[int]) -> tuple[int, int]:
        """The bytes that these neighbouring slots take, from and to."""
        return slots[0] * self.slots.stride, (slots[-1] + 1) * self.slots.stride


class Staged(Sequence[Draw]):
    """The sets on a stage, each made only when somebody looks at it."""

    def __init__(self, stage: Stage, tree: Tree, size: int) -> None:
        self.stage, self.tree, self.size = stage, tree, size

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> Draw: ...
    @overload
    def __getitem__(self, index: slice) -> list[Draw]: ...
    def __getitem__(self, index: int | slice) -> Draw | list[Draw]:
        if isinstance(index, slice):
            return [self[number] for number in range(self.size)[index]]
        slot = range(self.size)[index]
        return Draw(self.tree, self.stage.slots.views(self.stage.arena, slot))
