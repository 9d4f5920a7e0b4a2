"""Small references on disk, and a referee over them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.verdict import Verdict

RELU = """
import torch
class {name}(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
"""
INPUTS = """
def get_inputs():
    return [torch.randn(32, 64)]
def get_init_inputs():
    return []
"""


@pytest.fixture
def relu_reference(tmp_path: Path) -> Path:
    path = tmp_path / "reference.py"
    path.write_text(RELU.format(name="Model") + INPUTS)
    return path


@pytest.fixture
def judge() -> Callable[[Path, str], Verdict]:
    """Judges one candidate's source on the CPU with a short timing budget."""

    def judged(reference: Path, source: str) -> Verdict:
        async def run() -> Verdict:
            async with Referee(JudgeOptions(device="cpu", timing_budget_s=0.5)) as referee:
                await referee.open(reference)
                return await referee.judge("c1", source, lambda event: None)

        return asyncio.run(run())

    return judged
