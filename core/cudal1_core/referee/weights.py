"""Other weights for the same module, so that an answer which ignores the weights it was given shows as wrong.

Parameters and the float buffers change; integers, zeros, ones and non-finite entries of buffers stay, since
they are often masks or constants; what is positive throughout (variances, scales) stays positive.
"""

from __future__ import annotations

from typing import Any

import torch

SPREAD = 0.2  # standard deviation of the change, on a log scale


def perturb(
    state: dict[str, torch.Tensor], parameters: set[str], generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """A copy of `state` with changed values; tensors that share memory change together."""
    changed: dict[str, torch.Tensor] = {}
    seen: dict[tuple[Any, ...], torch.Tensor] = {}
    for name, value in state.items():
        place = (value.data_ptr(), value.storage_offset(), tuple(value.shape), tuple(value.stride()))
        if value.numel() and place in seen:
            changed[name] = seen[place]
            continue
        changed[name] = _perturb(value, name in parameters, name, generator)
        seen[place] = changed[name]
    return changed


def _perturb(value: torch.Tensor, parameter: bool, name: str, generator: torch.Generator) -> torch.Tensor:
    if not value.dtype.is_floating_point or not value.numel():
        return value.clone()
    noise = torch.empty(value.shape, device=value.device).normal_(generator=generator)
    wide = value.float()
    scaled = wide * torch.exp(SPREAD * noise)
    if parameter or name.endswith("running_mean"):
        positive = bool((wide > 0).all())
        spread = float(wide.std()) if value.numel() > 1 else 0.0
        if not positive:
            scaled = scaled + 0.1 * (spread or float(wide.abs().mean()) or 1.0) * noise.flip(0)
        return scaled.to(value.dtype)
    if name.endswith("running_var"):
        return scaled.to(value.dtype)
    structural = (wide == 0) | (wide.abs() == 1) | ~torch.isfinite(wide)
    return torch.where(structural, wide, scaled).to(value.dtype)
