"""The roofline: what is counted, what a device's peaks say of a size, and when a figure is too good."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import torch
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.referee.peaks import Peaks, load, save
from cudal1_core.referee.roofline import Counting, Roofline, Work
from cudal1_core.verdict import Verdict
from torch import nn

from tests.referee.conftest import RELU

FLOAT = 4


def counted(model: nn.Module, *inputs: torch.Tensor) -> tuple[int, int]:
    """(bytes, operations) of one call."""
    counting = Counting([*inputs, *model.parameters(), *model.buffers()])
    with torch.no_grad(), counting:
        made = model(*inputs)
    return counting.read() + counting.written([made]), sum(counting.operations.values())


class Chain(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.relu(x) * 2 + x)


class Half(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[: len(x) // 2].neg()


class Split(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one, other = x.chunk(2)
        return one * other


class Itself(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(-1)


class Broad(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.expand(64, -1) + 1


def test_what_is_in_between_is_not_counted() -> None:
    assert counted(Chain(), torch.randn(32, 64)) == (2 * 32 * 64 * FLOAT, 0)


def test_a_product_reads_its_weights_once_and_counts_two_operations_a_term() -> None:
    nbytes, operations = counted(nn.Linear(64, 16), torch.randn(8, 64))
    assert nbytes == (8 * 64 + 64 * 16 + 16 + 8 * 16) * FLOAT
    assert operations == 2 * 8 * 64 * 16


@pytest.mark.parametrize(
    ("model", "elements"),
    [
        (Half(), 500 + 500),  # the other half is never read
        (Split(), 1000 + 500),  # both halves are
        (Itself(), 0),  # nothing is written, nothing read
    ],
)
def test_parts_and_views(model: nn.Module, elements: int) -> None:
    assert counted(model, torch.randn(1000))[0] == elements * FLOAT


def test_what_is_expanded_is_read_once() -> None:
    assert counted(Broad(), torch.randn(1, 100))[0] == (100 + 64 * 100) * FLOAT


def test_of_a_table_only_the_rows_that_are_looked_up_count() -> None:
    nbytes, _ = counted(nn.Embedding(10_000, 8), torch.arange(4))
    assert nbytes == 4 * 8 + 2 * 4 * 8 * FLOAT


def test_a_small_set_is_no_slower_than_a_large_one() -> None:
    peaks = Peaks({1 << 16: 1e9, 1 << 20: 5e10, 1 << 24: 1e10})  # the smallest was held up by its start
    assert peaks.bytes_a_second(100) == 5e10
    assert peaks.bytes_a_second(1 << 20) == 5e10
    assert peaks.bytes_a_second((1 << 24) - 1) == 5e10
    assert peaks.bytes_a_second(1 << 30) == 1e10


def test_peaks_are_measured_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert load("cpu") == Peaks()
    peaks = Peaks()
    peaks.measure("cpu", [torch.float32])
    assert all(speed > 1e7 for speed in peaks.bandwidth.values())
    assert peaks.rate["float32"] > 1e7
    before = dict(peaks.rate)
    peaks.measure("cpu", [torch.float32])
    assert peaks.rate["float32"] >= before["float32"]  # the largest figure stays
    save("cpu", peaks)
    assert load("cpu") == peaks


@pytest.fixture
def limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Roofline:
    """1 MB and a million operations, on a device of which another look finds nothing new."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(Peaks, "measure", lambda self, device, dtypes, *, again=False: None)
    made = Peaks({1: 1e9}, {"float32": 1e10})  # 1 ms of memory, 0.1 ms of operations
    save("cpu", made)
    return Roofline("cpu", Work(1_000_000, {torch.float32: 1_000_000}))


def test_the_nearer_limit_is_the_one_that_counts(limits: Roofline) -> None:
    told = limits.share(2e-3)
    assert (told["bound"], told["share"]) == ("memory", pytest.approx(0.5))
    assert told["least_ms"] == pytest.approx(1.0)
    limits.work = Work(1_000_000, {torch.float32: 15_000_000})
    told = limits.share(2e-3)
    assert (told["bound"], told["share"]) == ("compute", pytest.approx(0.75))


def test_too_quick_for_the_operations_leaves_the_memory_as_the_limit(limits: Roofline) -> None:
    limits.work = Work(1_000_000, {torch.float32: 100_000_000})
    told = limits.share(2e-3)
    assert told["compute"] == pytest.approx(5.0)
    assert (told["bound"], told["share"]) == ("memory", pytest.approx(0.5))


def test_a_verdict_says_how_near_it_is(relu_reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    async def run() -> Verdict:
        async with Referee(JudgeOptions(device="cpu", timing_budget_s=0.3)) as referee:
            await referee.open(relu_reference)
            return await referee.judge("c", RELU.format(name="ModelNew"), lambda event: None)

    verdict = asyncio.run(run())
    assert verdict.accepted, verdict.reason
    assert verdict.roofline is not None
    assert verdict.roofline["bytes"] == 2 * 32 * 64 * FLOAT
    assert verdict.roofline["share"] > 0
    assert (tmp_path / "cudal1-tui" / "peaks-cpu.json").is_file()
    assert any(check.name == "roofline" for check in verdict.checks)
