"""Lanes: each piece of work is done once, and what goes wrong in one ends every worker in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cudal1_core.bench.judging import Work
from cudal1_core.bench.lanes import MOST_FAILURES, lanes_for, play
from cudal1_core.bench.playing import Lent, PlayingWorker, PolicyFacts
from cudal1_core.bench.row import Row
from cudal1_core.bench.suites import Subject
from cudal1_core.errors import RefereeError
from cudal1_core.rounds import RunOptions

from tests.bench.rows import accepted
from tests.bench.test_judging import Deaf
from tests.unit.scripted import ScriptedPolicy

WORK = [Work(Subject(f"L1/{number}", "")) for number in range(1, 21)]


class Bench:
    """Workers that give a row for each piece of work, and count how many are open."""

    def __init__(self, failed: Callable[[str], bool] = lambda task: False) -> None:
        self.failed = failed
        self.rows: list[Row] = []
        self.by_device: dict[str, int] = {}
        self.open = 0

    def make(self, device: str) -> Scripted:
        self.open += 1
        return Scripted(self, device)

    def play(self, lanes: list[str], going: Callable[[], bool] = lambda: True) -> None:
        asyncio.run(play(WORK, lanes, self.make, Deaf(), self.rows.extend, going=going))


class Scripted:
    def __init__(self, bench: Bench, device: str) -> None:
        self.bench = bench
        self.device = device

    async def do(self, work: Work, lane: int, keep: Callable[[list[Row]], None], going: Callable[[], bool]) -> None:
        await asyncio.sleep(0)
        row = accepted(work.subject.task, 1.0)
        self.bench.by_device[self.device] = self.bench.by_device.get(self.device, 0) + 1
        keep([replace(row, failed="gone") if self.bench.failed(row.task) else row])

    async def close(self) -> None:
        self.bench.open -= 1


def test_every_piece_is_done_once_and_every_device_has_its_share() -> None:
    bench = Bench()
    bench.play(["cuda:0", "cuda:0", "cuda:1"])
    assert sorted(row.task for row in bench.rows) == sorted(work.subject.task for work in WORK)
    assert set(bench.by_device) == {"cuda:0", "cuda:1"}
    assert bench.open == 0


def test_failures_in_a_row_end_the_bench_and_single_ones_do_not() -> None:
    single = Bench(lambda task: int(task[3:]) % 2 == 0)
    single.play(["cpu"])
    assert len(single.rows) == len(WORK)
    broken = Bench(lambda task: True)
    with pytest.raises(RefereeError, match=f"{MOST_FAILURES} times in a row"):
        broken.play(["cuda:0", "cuda:1"])
    assert MOST_FAILURES <= len(broken.rows) <= MOST_FAILURES + 1  # each is kept, also of the other lane
    assert broken.open == 0


def test_nothing_is_begun_once_time_is_up() -> None:
    bench = Bench()
    bench.play(["cuda:0", "cuda:1"], going=lambda: len(bench.rows) < 3)
    assert 3 <= len(bench.rows) <= 4  # what was at work is finished
    assert bench.open == 0


def test_lanes_by_device() -> None:
    assert lanes_for(["cpu"], 4) == ["cpu"]  # building would disturb what is timed
    assert lanes_for(["cuda:0", "cuda:1"], 2) == ["cuda:0", "cuda:0", "cuda:1", "cuda:1"]
    assert set(lanes_for(["cuda:0"], None)) == {"cuda:0"}


@pytest.mark.parametrize(("shared", "closed"), [(True, 0), (False, 1)])
def test_a_lane_that_ends_leaves_a_policy_that_all_share_alone(tmp_path: Path, shared: bool, closed: int) -> None:
    policy = ScriptedPolicy([])
    given = Lent(policy) if shared else policy
    worker = PlayingWorker(RunOptions(), given, PolicyFacts("scripted", {}), tmp_path, Deaf())
    asyncio.run(worker.close())
    assert policy.closed == closed
