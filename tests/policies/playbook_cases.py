"""Runs the playbook on small references and compares what it writes with the reference, in numbers."""

from __future__ import annotations

import sys
import textwrap
import types
from typing import TYPE_CHECKING, Any

import torch
from cudal1_core.playbook.search import Search
from cudal1_core.playbook.subject import read

if TYPE_CHECKING:
    from pathlib import Path

HEADER = """
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

"""


def search_for(folder: Path, body: str, device: str = "cpu") -> Search:
    path = folder / "reference.py"
    path.write_text(HEADER + textwrap.dedent(body))
    return Search(read(path, path.read_text(), "Model", device))


def forward_only(code: str, inputs: str, init: str = "pass") -> str:
    """A reference of one forward line (or several, separated by `;`)."""
    lines = "\n".join("        " + part.strip() for part in code.split(";"))
    names = ", ".join("xyz"[: inputs.count("torch.")])
    makers = "\n".join("        " + part.strip() for part in init.split(";"))
    return (
        "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"{makers}\n\n    def forward(self, {names}):\n{lines}\n\n"
        f"def get_inputs():\n    return [{inputs}]\n\ndef get_init_inputs():\n    return []\n"
    )


def candidate(search: Search, *techniques: str) -> str | None:
    made = search.make(frozenset(techniques))
    return made.source if made is not None else None


def _module(source: str, name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, f"<{name}>", "exec"), module.__dict__)
    return module


def _other_weights(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Integers stay, variances stay positive."""
    return {name: _other(t, "var" in name) for name, t in state.items()}


def _other(tensor: torch.Tensor, positive: bool) -> torch.Tensor:
    if not tensor.is_floating_point():
        return tensor
    return tensor.abs() + torch.rand_like(tensor) if positive else tensor + 0.3 * torch.randn_like(tensor)


def _leaves(result: Any) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    return [leaf for part in result for leaf in _leaves(part)]


def assert_same_function(search: Search, source: str) -> None:
    """On fresh inputs and changed weights, in float64 to rounding and in float32 to the reference's own error."""
    reference = _module(search.subject.source, "reference_under_test")
    new = _module(source, "candidate_under_test")
    init = reference.get_init_inputs()
    torch.manual_seed(5)
    old_model = reference.Model(*init)
    torch.manual_seed(5)
    new_model = new.ModelNew(*init)
    for (name, mine), (wanted, theirs) in zip(
        new_model.state_dict().items(), old_model.state_dict().items(), strict=True
    ):
        assert name == wanted
        assert torch.equal(mine, theirs)
    earlier: list[tuple[torch.Tensor, torch.Tensor]] = []
    for turn in range(3):
        inputs = [part.clone() for part in reference.get_inputs()]
        if turn:
            state = _other_weights(old_model.state_dict())
            old_model.load_state_dict(state)
            new_model.load_state_dict(state)
        before = [part.clone() for part in inputs]
        with torch.no_grad():
            got = _leaves(new_model(*inputs))
            assert all(torch.equal(a, b) for a, b in zip(inputs, before, strict=True))
            plain = _leaves(old_model(*inputs))
            wide = [part.double() if part.is_floating_point() else part for part in inputs]
            truth = _leaves(old_model.double()(*wide))
            got_wide = _leaves(new_model.double()(*wide))
        old_model.float()
        new_model.float()
        for mine, theirs, exact, mine_wide in zip(got, plain, truth, got_wide, strict=True):
            assert mine.shape == theirs.shape
            assert mine.dtype == theirs.dtype
            scale = exact.abs().max().item() + 1e-30
            assert (mine_wide - exact).abs().max().item() <= 1e-11 * scale
            own = (theirs.double() - exact).abs().max().item()
            assert (mine.double() - exact).abs().max().item() <= 4 * own + 1e-6 * scale
            earlier.append((mine, mine.clone()))
    assert all(torch.equal(now, then) for now, then in earlier)
