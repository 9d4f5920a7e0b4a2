"""The right answer: the reference's own module run in float64, and how far rounding alone takes it from there.

Where float64 is not to be had (random numbers in the forward, an operator without it, no memory) the truth is
the reference itself and its own error is estimated by rounding its inputs; the verdict's checks say so.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from cudal1_core.referee import compare
from cudal1_core.referee.drawing import Draw
from cudal1_core.referee.layout import resolved, tensors_of

# last bits by which inputs are changed, a run each, to see what near-ties can turn into: sums of many terms
# average a change away, so it must grow to show what their own rounding does
JITTERS = (5, 6, 4, 7, 3, 2, 5, 6, 4, 7, 3, 2)
FAR = 0.05  # a float64 run further than this from the reference, relative to scale, is another function


class Truth:
    """The reference's module on the trusted side, as it is and in float64."""

    def __init__(self, model: Any, device: str, seeded: bool, generator: torch.Generator) -> None:
        self.model = model
        self.device = device
        self.seeded = seeded
        self.generator = generator
        self.state: dict[str, torch.Tensor] = {}
        self.wide: Any = None
        self.why_not = "random numbers in the forward" if seeded else ""
        if not seeded:
            try:
                self.wide = _widen(copy.deepcopy(model))
            except Exception as error:
                self.why_not = f"{type(error).__name__}: {error}"[:200]

    def use(self, state: dict[str, torch.Tensor]) -> None:
        self.state = state

    def reference(self, draw: Draw, seed: int | None) -> list[torch.Tensor]:
        """Tensors of the reference's output in its own precision."""
        return self._run(self.model, draw, seed, lambda t: t)

    def exact(self, draw: Draw) -> list[torch.Tensor] | None:
        """Tensors of a float64 run, or None where that cannot be had."""
        if self.wide is None:
            return None
        try:
            with _float64_defaults():
                return self._run(self.wide, draw, None, _wide)
        except Exception as error:
            self.give_up(f"{type(error).__name__}: {error}"[:200])
            return None

    def give_up(self, why: str) -> None:
        self.why_not, self.wide = why, None

    def rounded(self, draw: Draw, seed: int | None, mantissa: int | None = None) -> list[torch.Tensor]:
        """Tensors where inputs and weights were first rounded to the next cheaper format, or to `mantissa` bits."""

        def cheapen(tensor: torch.Tensor) -> torch.Tensor:
            bits = compare.MANTISSA.get(tensor.dtype)
            return _within(tensor, compare.round_mantissa(tensor, mantissa or bits[1])) if bits else tensor

        if self.wide is not None:
            with _float64_defaults():
                return self._run(self.wide, draw, seed, lambda t: _wide(cheapen(t)), cheapen)
        return self._run(self.model, draw, seed, cheapen, cheapen)

    def jittered(self, draw: Draw, seed: int | None, last_bits: int = 2) -> list[torch.Tensor]:
        """Tensors where every input was changed at random within its `last_bits` last bits.

        A reference that refuses such inputs is run on the draw as it is.
        """

        def jitter(tensor: torch.Tensor) -> torch.Tensor:
            bits = compare.MANTISSA.get(tensor.dtype)
            if bits is None or tensor.dtype.is_complex:
                return _wide(tensor) if self.wide is not None else tensor
            noise = torch.empty(tensor.shape, device=tensor.device, dtype=torch.float32)
            noise.uniform_(-1, 1, generator=self.generator)
            moved = _within(tensor, noise.double().mul_(2.0 ** -(bits[0] - last_bits)).add_(1).mul_(tensor))
            return moved if self.wide is not None else moved.to(tensor.dtype)

        try:
            if self.wide is not None:
                with _float64_defaults():
                    return self._run(self.wide, draw, None, jitter)
            return self._run(self.model, draw, seed, jitter)
        except Exception:
            return self.reference(draw, seed)

    def _run(self, model: Any, draw: Draw, seed: int | None, convert: Any, weights: Any = None) -> list[torch.Tensor]:
        if self.state and isinstance(model, torch.nn.Module):
            state = {k: weights(v) for k, v in self.state.items()} if weights else self.state
            model.load_state_dict(state, strict=False)
        args, kwargs = draw.tree.build([convert(t.clone(memory_format=torch.preserve_format)) for t in draw.tensors])
        if seed is not None:
            torch.manual_seed(seed)
        with torch.no_grad():
            return [resolved(tensor) for tensor in tensors_of(model(*args, **kwargs), self.device)]


def _within(tensor: torch.Tensor, changed: torch.Tensor) -> torch.Tensor:
    """`changed` kept between the least and the largest of `tensor`, since a reference may refuse what lies outside."""
    if tensor.dtype.is_complex or not tensor.numel() or not bool(tensor.isfinite().all()):
        return changed
    low, high = (tensor.float() if tensor.dtype.itemsize == 1 else tensor).aminmax()
    return changed.clamp_(low.item(), high.item())


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype.is_complex:
        return tensor.to(torch.complex128)
    return tensor.double() if tensor.dtype.is_floating_point else tensor


def _widen(model: Any) -> Any:
    if not isinstance(model, torch.nn.Module):
        return model
    model = model.double()
    for module in model.modules():
        for name, value in vars(module).items():
            if isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
                setattr(module, name, value.double())
    return model


@contextmanager
def _float64_defaults() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
