"""Baselines, peaks, receipts' clocks and the paper's second look, on a CUDA device."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from cudal1_core.archive import Archive
from cudal1_core.baselines import tell_baselines
from cudal1_core.events import BaselineTimed, Event
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.referee.verify import verify

CHAIN = """
import torch
class {name}(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(1024))
    def forward(self, x):
        for _ in range(8):
            x = torch.relu(x * self.scale + 0.1)
        return x
"""
INPUTS = """
def get_inputs():
    return [torch.randn(64, 1024)]
def get_init_inputs():
    return []
"""
OPTIONS = JudgeOptions(device="cuda", timing_budget_s=2.0)


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    reference, candidate = tmp_path / "reference.py", tmp_path / "candidate.py"
    reference.write_text(CHAIN.format(name="Model") + INPUTS)
    candidate.write_text(CHAIN.format(name="ModelNew"))
    return reference, candidate


@pytest.mark.timeout(600)
def test_all_three_baselines_can_be_timed(pair: tuple[Path, Path]) -> None:
    events: list[Event] = []

    async def run() -> None:
        async with Referee(OPTIONS) as referee:
            await referee.open(pair[0])
            await tell_baselines(referee, Archive(), "all", events.append)

    asyncio.run(run())
    told = [event.baseline for event in events if isinstance(event, BaselineTimed)]
    assert told == ["compile", "compile-reduce-overhead", "cuda-graph"], events


def test_a_verdict_has_a_roofline_and_a_receipt_the_clocks(pair: tuple[Path, Path]) -> None:
    judged = asyncio.run(verify(*pair, OPTIONS))
    assert judged.verdict.accepted, judged.verdict.reason
    assert judged.verdict.roofline is not None
    assert judged.verdict.roofline["bytes"] == (2 * 64 * 1024 + 1024) * 4
    assert judged.measured is not None
    assert judged.measured.before["gpu"]["sm_mhz"] > 0


def test_peaks_of_a_gpu_are_those_of_memory_and_of_products() -> None:
    import torch
    from cudal1_core.referee.peaks import Peaks

    peaks = Peaks()
    peaks.measure("cuda:0", [torch.bfloat16])
    assert peaks.bytes_a_second(1 << 40) > 1e10
    assert peaks.rate["bfloat16"] > 1e11
