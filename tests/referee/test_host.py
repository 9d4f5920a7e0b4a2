"""The host: what is left behind, what a verdict carries, and what a bad candidate costs the next one."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path

import psutil
import pytest
from cudal1_core.errors import RefereeError, UnjudgeableError
from cudal1_core.events import CheckFinished, Event, StageStarted, TimingSampled
from cudal1_core.referee.channel import Channel, pair
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.referee.processes import Line
from cudal1_core.referee.turn import cpu_turn
from cudal1_core.verdict import Verdict

from tests.referee.conftest import RELU

RIGHT = RELU.format(name="ModelNew")
CRASHES = RIGHT.replace("return torch.relu(x)", "import ctypes; ctypes.string_at(8)")
OPTIONS = JudgeOptions(device="cpu", timing_budget_s=0.5)


def test_events_tell_the_story_in_order(relu_reference: Path) -> None:
    events: list[Event] = []

    async def run() -> Verdict:
        async with Referee(OPTIONS) as referee:
            await referee.open(relu_reference)
            return await referee.judge("c1", RIGHT, events.append)

    verdict = asyncio.run(run())
    assert verdict.accepted
    stages = [event.stage for event in events if isinstance(event, StageStarted)]
    assert [stage for stage in stages if stage != "waiting"] == ["building", "checking", "timing"]
    checks = [event.check for event in events if isinstance(event, CheckFinished)]
    assert checks == list(verdict.checks)
    assert any(isinstance(event, TimingSampled) for event in events)
    assert verdict.speedup_interval is not None
    assert verdict.speedup_interval[0] <= verdict.speedup_interval[1]
    assert set(verdict.versions) == {"python", "torch", "cuda"}


def test_a_crash_is_named_and_costs_the_next_candidate_nothing(relu_reference: Path) -> None:
    async def run() -> list[Verdict]:
        async with Referee(OPTIONS) as referee:
            await referee.open(relu_reference)
            return [await referee.judge(f"c{i}", source, lambda e: None) for i, source in enumerate([CRASHES, RIGHT])]

    crashed, right = asyncio.run(run())
    assert (crashed.verdict, crashed.category) == ("rejected", "crashed")
    assert "SIGSEGV" in str(crashed.reason)
    assert right.accepted


def test_nothing_is_left_behind(relu_reference: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    roots: list[Path] = []

    async def run() -> None:
        async with Referee(OPTIONS) as referee:
            roots.append(referee.workers.root)
            await referee.open(relu_reference)
            for source in (RIGHT, CRASHES, "", "raise SystemExit(0)"):
                await referee.judge("c", source, lambda event: None)

    asyncio.run(run())
    assert not psutil.Process().children(recursive=True)
    assert not roots[0].exists()
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208


def test_a_run_can_be_ended_in_the_middle_of_a_judgement(relu_reference: Path) -> None:
    hangs = RIGHT.replace("return torch.relu(x)", "while True: pass")

    async def run() -> None:
        async with Referee(OPTIONS) as referee:
            await referee.open(relu_reference)
            judging = asyncio.create_task(referee.judge("c", hangs, lambda event: None))
            while not judging.done() and len(referee.workers.running) < 3:
                await asyncio.sleep(0)
            judging.cancel()
            await asyncio.gather(judging, return_exceptions=True)

    asyncio.run(run())
    assert not psutil.Process().children(recursive=True)


def test_a_judgement_that_was_cut_off_costs_the_next_candidate_nothing(relu_reference: Path) -> None:
    hangs = RIGHT.replace("return torch.relu(x)", "while True: pass")

    async def run() -> tuple[Verdict, float, int]:
        async with Referee(OPTIONS) as referee:
            await referee.open(relu_reference)
            checking = asyncio.Event()

            def emit(event: Event) -> None:
                if isinstance(event, StageStarted) and event.stage == "checking":
                    checking.set()

            judging = asyncio.create_task(referee.judge("c1", hangs, emit))
            await checking.wait()
            begin = time.monotonic()
            judging.cancel()
            await asyncio.gather(judging, return_exceptions=True)
            seconds = time.monotonic() - begin
            return await referee.judge("c2", RIGHT, lambda event: None), seconds, len(referee.workers.running)

    verdict, seconds, processes = asyncio.run(run())
    assert verdict.accepted
    assert seconds < OPTIONS.timeout_s / 3
    assert processes == 2  # of the reference alone
    assert not psutil.Process().children(recursive=True)


def test_empty_source_is_no_code(relu_reference: Path) -> None:
    async def run() -> Verdict:
        async with Referee(OPTIONS) as referee:
            await referee.open(relu_reference)
            return await referee.judge("c", "  \n", lambda event: None)

    assert asyncio.run(run()).category == "no_code"


def test_the_trusted_worker_can_die_and_the_next_candidate_is_judged(relu_reference: Path) -> None:
    async def run() -> Verdict:
        async with Referee(OPTIONS) as referee:
            await referee.open(relu_reference)
            assert referee.trusted is not None
            (worker,) = psutil.Process(referee.trusted.pid).children()
            worker.kill()
            with pytest.raises(RefereeError, match="SIGKILL"):
                await referee.judge("c1", RIGHT, lambda event: None)
            return await referee.judge("c2", RIGHT, lambda event: None)

    assert asyncio.run(run()).accepted


def test_a_start_that_is_cut_off_is_closed_in_order() -> None:
    async def cut_off() -> Referee:
        referee = Referee(OPTIONS)
        starting = asyncio.create_task(referee.__aenter__())
        while referee.workers.zygote is None:
            await asyncio.sleep(0)
        zygote = referee.workers.zygote
        starting.cancel()
        await asyncio.wait({starting})
        await referee.close()
        assert starting.cancelled()
        assert zygote.returncode is not None
        return referee

    assert not asyncio.run(cut_off()).workers.root.exists()


def test_waiting_for_a_turn_on_the_device_counts_against_nobody() -> None:
    async def run() -> tuple[dict[str, object], str]:
        ours, theirs = pair()
        referee = Referee(OPTIONS)
        referee.line = Line(ours)
        await referee.line.connect()
        worker = Channel(theirs)
        worker.send_json({"fact": {"waits": True}})
        answer = asyncio.create_task(referee._result(0.2, lambda fact: None))
        await asyncio.sleep(0.5)
        worker.send_json({"fact": {"waits": False}})
        worker.send_json({"result": {"of": "it"}})
        result = await answer
        with pytest.raises(UnjudgeableError) as late:
            await referee._result(0.2, lambda fact: None)
        worker.close()
        return result, late.value.category

    assert asyncio.run(run()) == ({"of": "it"}, "reference_failed")


def test_a_turn_is_waited_for_and_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    told: list[bool] = []
    inside = threading.Event()

    def other() -> None:
        with cpu_turn("cpu", told.append):
            inside.set()

    with cpu_turn("cpu", told.append):
        assert not told
        thread = threading.Thread(target=other)
        thread.start()
        while not told:
            time.sleep(0.01)
        assert not inside.is_set()
    thread.join(30)
    assert told == [True, False]
    assert inside.is_set()


def test_on_the_processor_a_turn_is_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    told: list[bool] = []
    with cpu_turn("cpu") as first, cpu_turn("cpu", told.append, patience_s=0.05) as second:
        assert (first, second) == (True, False)
    assert told == [True, False]
    with cpu_turn("cpu") as alone:
        assert alone
