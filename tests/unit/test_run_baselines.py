"""When a run times the other baselines: first where it is told to, else once its rounds are over."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

from cudal1_core.baselines import Timed
from cudal1_core.events import BaselineTimed, Event, RoundFinished, RunFinished
from cudal1_core.reference import Task

from tests.unit.scripted import Bench, ScriptedReferee, make_task, whole

OTHERS = ["compile", "compile-reduce-overhead", "cuda-graph"]


@dataclass
class TimingReferee(ScriptedReferee):
    """On a GPU, so that there are three baselines besides eager."""

    task: Task = field(default_factory=lambda: replace(make_task(), device="cuda:0"))  # type: ignore[assignment]
    hold: asyncio.Event | None = None  # where set, timing waits for it
    asked: list[str] = field(default_factory=list)
    timing: asyncio.Event = field(default_factory=asyncio.Event)

    def baseline_key(self) -> str:
        return "key"

    def know_baseline(self, name: str, ratio: float) -> BaselineTimed:
        return BaselineTimed(baseline=name, ms=2.0 / ratio)

    async def time_baseline(self, name: str) -> Timed:
        self.asked.append(name)
        self.timing.set()
        if self.hold is not None:
            await self.hold.wait()
        return Timed(2.0, 0.01)


def with_timing(bench: Bench) -> TimingReferee:
    bench.referee = TimingReferee()
    return bench.referee


def others(events: list[Event]) -> list[str]:
    return [event.baseline for event in events if isinstance(event, BaselineTimed) and event.baseline != "eager"]


def test_with_all_they_are_timed_before_the_first_round(bench: Bench) -> None:
    with_timing(bench)

    async def play() -> list[Event]:
        return [event async for event in bench.run(whole("a"), baselines="all").events()]

    events = asyncio.run(play())
    assert others(events) == OTHERS
    before = events[: next(n for n, event in enumerate(events) if event.name == "round_started")]
    assert others(before) == OTHERS
    assert bench.archive.baselines("key") == dict.fromkeys(OTHERS, 2.0)


def test_a_headless_run_times_none_unasked_but_tells_what_is_known(bench: Bench) -> None:
    referee = with_timing(bench)
    bench.archive.keep_baseline("key", "compile", 1.5)

    async def play() -> list[Event]:
        return [event async for event in bench.run(whole("a")).events()]

    assert others(asyncio.run(play())) == ["compile"]
    assert referee.asked == []


def test_a_run_that_stays_open_times_them_when_its_rounds_are_over(bench: Bench) -> None:
    with_timing(bench)

    async def play() -> list[Event]:
        run, seen = bench.run(whole("a"), keep_open=True), list[Event]()
        async for event in run.events():
            seen.append(event)
            if others(seen) == OTHERS:
                await run.stop()
                break
        return seen

    events = asyncio.run(play())
    ended = next(n for n, event in enumerate(events) if isinstance(event, RunFinished))
    assert others(events[:ended]) == []


def test_more_rounds_do_not_wait_for_them(bench: Bench) -> None:
    referee = with_timing(bench)
    referee.hold = asyncio.Event()  # never set

    async def play() -> int:
        run, rounds = bench.run(whole("a"), whole("b"), rounds=1, keep_open=True), 0
        async for event in run.events():
            if isinstance(event, RunFinished) and rounds == 1:
                await referee.timing.wait()
                run.extend(1)
            elif isinstance(event, RoundFinished):
                rounds += 1
                if rounds == 2:
                    await run.stop()
                    break
        return rounds

    assert asyncio.run(asyncio.wait_for(play(), 30)) == 2
    assert referee.asked[0] == "compile"
