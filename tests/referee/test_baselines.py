"""Baselines: torch.compile timed against eager by the candidates' protocol, and remembered."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from cudal1_core.archive import Archive
from cudal1_core.baselines import COMPILERS, Timed, others, tell_baselines
from cudal1_core.errors import UnjudgeableError
from cudal1_core.events import BaselineTimed, Event, TroubleMet
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.reference import Task
from cudal1_core.verdict import Verdict
from cudal1_core.versus import best_other, versus

from tests.referee.conftest import INPUTS, RELU

OPTIONS = JudgeOptions(device="cpu", timing_budget_s=0.3)
TASK = Task("m.py", "Model", "x", "h", "cpu", "CPU", "float32", (), (), 0)
compiles = pytest.mark.skipif(not any(map(shutil.which, COMPILERS)), reason="torch.compile needs a C++ compiler")


class Known:
    """A referee that times nothing."""

    def __init__(self, task: Task, key: str = "k", ratio: float | None = 2.0) -> None:
        self.task: Task | None = task
        self.timed: list[str] = []
        self.half_interval = 0.01
        self._key, self._ratio = key, ratio

    def baseline_key(self) -> str:
        return self._key

    def know_baseline(self, name: str, ratio: float) -> BaselineTimed:
        return BaselineTimed(baseline=name, ms=1.0 / ratio)

    async def time_baseline(self, name: str) -> Timed:
        self.timed.append(name)
        if self._ratio is None:
            raise UnjudgeableError("unsupported", f"{name} cannot be had")
        return Timed(self._ratio, self.half_interval)


def told(referee: Known, archive: Archive, which: str, **more: bool) -> list[Event]:
    events: list[Event] = []
    asyncio.run(tell_baselines(referee, archive, which, events.append, **more))  # type: ignore[arg-type]
    return events


def test_a_baseline_is_timed_once_for_a_key() -> None:
    archive, task = Archive(), replace(TASK, device="cuda:0")
    first = Known(task)
    assert told(first, archive, "known") == []
    events = told(first, archive, "all")
    names = ["compile", "compile-reduce-overhead", "cuda-graph"]
    assert [event.baseline for event in events if isinstance(event, BaselineTimed)] == names == first.timed
    later = Known(task)
    assert len(told(later, archive, "all")) == 3
    assert later.timed == []
    changed = Known(task, key="another")
    assert told(changed, archive, "known") == []


def test_what_was_timed_on_a_crowded_machine_is_told_and_not_kept() -> None:
    archive, rough = Archive(), Known(replace(TASK, device="cuda:0"))
    rough.half_interval = 0.3
    assert len(told(rough, archive, "all")) == 3
    assert archive.baselines("k") == {}


def test_what_cannot_be_timed_is_trouble_only_where_it_was_asked_for() -> None:
    task = replace(TASK, device="cuda:0")
    assert all(isinstance(event, TroubleMet) for event in told(Known(task, ratio=None), Archive(), "all"))
    assert told(Known(task, ratio=None), Archive(), "all", quietly=True) == []


def test_graphs_are_for_gpus() -> None:
    assert set(others("cpu")) <= {"compile"}
    assert len(others("cuda:1")) == 3


def test_a_candidate_against_a_baseline() -> None:
    baselines = {"eager": 1.0, "compile": 0.5, "cuda-graph": 0.8}
    assert versus(3.0, baselines, "compile") == pytest.approx(1.5)
    assert versus(None, baselines, "compile") is None
    assert versus(3.0, baselines, "gone") is None
    assert best_other(baselines) == "compile"
    assert best_other({"eager": 1.0}) is None


@compiles
def test_compile_is_timed_for_real_and_stands_in_every_later_verdict(relu_reference: Path) -> None:
    archive = Archive()
    events: list[Event] = []

    async def run() -> tuple[str, Verdict]:
        async with Referee(OPTIONS) as referee:
            await referee.open(relu_reference)
            key = referee.baseline_key()
            await tell_baselines(referee, archive, "all", events.append)
            return key, await referee.judge("c", RELU.format(name="ModelNew"), lambda event: None)

    key, verdict = asyncio.run(run())
    assert [type(event) for event in events] == [BaselineTimed], events
    assert verdict.accepted, verdict.reason
    assert set(verdict.baselines) == {"eager", "compile"}
    assert isinstance(events[0], BaselineTimed)
    assert verdict.baselines["compile"] == events[0].ms
    if kept := archive.baselines(key):  # where the machine was quiet enough
        assert verdict.baselines["compile"] == pytest.approx(verdict.baselines["eager"] / kept["compile"])


@compiles
def test_a_reference_that_does_not_compile_costs_no_candidate_anything(tmp_path: Path) -> None:
    path = tmp_path / "reference.py"
    body = (
        RELU.format(name="Model")
        + """
    def compile(self, **options):
        raise RuntimeError("this module does not compile")
"""
    )
    path.write_text(body + INPUTS)

    async def run() -> Verdict:
        async with Referee(OPTIONS) as referee:
            await referee.open(path)
            with pytest.raises(UnjudgeableError, match="baseline compile could not be timed"):
                await referee.time_baseline("compile")
            return await referee.judge("c", RELU.format(name="ModelNew"), lambda event: None)

    assert asyncio.run(run()).accepted
