"""How near a time comes to what the device allows: the least traffic of the reference, and its products.

Traffic counts what must be moved whoever computes it: each input and weight that the forward reads once, each output
written once, nothing in between. So no right candidate beats it, but for parts of an input that the answer does not
need. Operations are those of the reference (torch.utils.flop_counter: products, convolutions, attention); a candidate
may find a way with fewer, which is told apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from cudal1_core.referee import peaks as peak
from cudal1_core.referee.layout import tensors_of
from cudal1_core.referee.peaks import Peaks
from cudal1_core.referee.qualify import Qualified

ABOVE = 1.1  # share of a limit from which a figure is too good: the peaks themselves are only measured
# of what these read, no more counts than what they give
_GATHERS = ("embedding", "index", "index_select", "gather", "take", "_embedding_bag", "slice_copy", "select_copy")


@dataclass(frozen=True, slots=True)
class Work:
    """What one call of the reference takes at least."""

    nbytes: int
    operations: dict[torch.dtype, int]  # by dtype of what is multiplied


@dataclass
class Roofline:
    """The limits of one task on its device."""

    device: str
    work: Work
    peaks: Peaks = field(default_factory=Peaks)

    def share(self, seconds: float) -> dict[str, Any]:
        """The roofline's part of a verdict, for a time of one call.

        {"share", "bound", "memory", "compute", "bytes", "operations", "least_ms"}: `bound` names the limit that is
        meant, "memory" or "compute". It is "compute" where that is the nearer one, unless the time is too short for the
        reference's operations.
        """
        if not self.peaks.bandwidth:
            self._look(again=False)
        memory, compute = self._limits()
        if max(memory, compute) > ABOVE * seconds:
            self._look(again=True)  # before anything is called too good
            memory, compute = self._limits()
        bound = "compute" if memory < compute <= ABOVE * seconds else "memory"
        least = compute if bound == "compute" else memory
        return {
            "share": least / seconds,
            "bound": bound,
            "memory": memory / seconds,
            "compute": compute / seconds,
            "bytes": self.work.nbytes,
            "operations": sum(self.work.operations.values()),
            "least_ms": least * 1e3,
        }

    def _limits(self) -> tuple[float, float]:
        """Least seconds a call by traffic, and by operations."""
        rates = self.peaks.rate
        memory = self.work.nbytes / self.peaks.bytes_a_second(self.work.nbytes)
        return memory, sum(count / rates[_name(dtype)] for dtype, count in self.work.operations.items())

    def _look(self, *, again: bool) -> None:
        self.peaks = peak.load(self.device)
        self.peaks.measure(self.device, list(self.work.operations), again=again)
        peak.save(self.device, self.peaks)


def roofline_of(q: Qualified) -> Roofline:
    """Runs the reference once and counts."""
    draw = q.inputs.pool[0]
    args, kwargs = draw.build()
    watched = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    if isinstance(q.model, torch.nn.Module):
        watched += [*q.model.parameters(), *q.model.buffers()]
    counting = Counting(watched)
    with torch.no_grad(), counting:
        made = q.model(*args, **kwargs)
    return Roofline(q.device, Work(counting.read() + counting.written(tensors_of(made, q.device)), counting.operations))


class Counting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts what is read of some tensors, and products."""

    def __init__(self, watched: list[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.whole = {_address(tensor): tensor.untyped_storage().nbytes() for tensor in watched}
        self.parts: dict[int, dict[Any, int]] = {address: {} for address in self.whole}
        self.operations: dict[torch.dtype, int] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # as in qualify.OperatorNames

    def read(self) -> int:
        """Bytes, every byte once."""
        return sum(min(sum(parts.values()), self.whole[address]) for address, parts in self.parts.items())

    def written(self, outputs: list[torch.Tensor]) -> int:
        """Bytes of what is no part of an input."""
        fresh = {_address(tensor): _nbytes(tensor) for tensor in outputs if _address(tensor) not in self.whole}
        return sum(fresh.values())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        packet = func.overloadpacket
        tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if packet in flop_registry and tensors:
            count = int(flop_registry[packet](*args, **kwargs, out_val=out))
            self.operations[tensors[0].dtype] = self.operations.get(tensors[0].dtype, 0) + count
        if not _is_view(func):
            most = None
            if packet.__name__ in _GATHERS:
                most = sum(_nbytes(leaf) for leaf in pytree.tree_leaves(out) if isinstance(leaf, torch.Tensor))
            for tensor in tensors:
                self._see(tensor, most)
        return out

    def _see(self, tensor: torch.Tensor, most: int | None) -> None:
        parts = self.parts.get(_address(tensor))
        if parts is not None:
            where = (tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
            nbytes = _nbytes(tensor) if most is None else min(most, _nbytes(tensor))
            parts[where] = max(nbytes, parts.get(where, 0))


def _is_view(func: Any) -> bool:
    returns = func._schema.returns
    return any(value.alias_info is not None and not value.alias_info.is_write for value in returns)


def _address(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _nbytes(tensor: torch.Tensor) -> int:
    """Of the memory behind it: what is expanded counts once."""
    count = tensor.element_size()
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= size if stride else 1
    return count if tensor.numel() else 0


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
