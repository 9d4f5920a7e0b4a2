"""A run has its candidates built while others are judged; who is ready first is judged first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from cudal1_core.errors import RefereeError
from cudal1_core.events import Event, RunFinished, StageStarted, VerdictReached

from tests.unit.scripted import Bench, ScriptedReferee, whole
from tests.unit.test_stopping import judged, play, stages


@dataclass
class Builder(ScriptedReferee):
    """Builds ahead what is named in `slow`, which takes until it is let go."""

    slow: dict[str, asyncio.Event] = field(default_factory=dict)
    fails: bool = False
    cut_off: list[str] = field(default_factory=list)

    def builds_ahead(self, source: str) -> bool:
        return source.split("'")[1] in self.slow

    async def build_ahead(self, candidate_id: str, source: str, emit: Callable[[Event], None]) -> None:
        emit(StageStarted(candidate=candidate_id, stage="building"))
        if self.fails:
            raise RefereeError("no process")
        try:
            await self.slow[source.split("'")[1]].wait()
        except asyncio.CancelledError:
            self.cut_off.append(candidate_id)
            raise
        emit(StageStarted(candidate=candidate_id, stage="queued"))


@pytest.fixture
def builder(bench: Bench) -> Builder:
    bench.referee = Builder()
    return bench.referee


def test_others_are_judged_while_one_is_built(bench: Bench, builder: Builder) -> None:
    builder.slow["a"] = asyncio.Event()

    def on(event: Event) -> None:
        if isinstance(event, VerdictReached) and event.candidate == "c03":
            builder.slow["a"].set()

    events = play(bench.run(whole("a", "b", "c")), on)
    assert judged(events) == ["c02", "c03", "c01"]
    assert stages(events, "c01") == ["queued", "building", "queued", "building", "checking", "timing"]


def test_the_same_code_again_is_not_built_again(bench: Bench, builder: Builder) -> None:
    builder.slow["a"] = asyncio.Event()
    builder.slow["a"].set()
    events = play(bench.run(whole("a"), whole("a")), lambda event: None)
    assert judged(events) == ["c01", "c02"]
    assert stages(events, "c02") == ["queued"]


def test_dismissing_one_ends_its_build(bench: Bench, builder: Builder) -> None:
    builder.slow["a"] = asyncio.Event()
    run = bench.run(whole("a", "b"))

    def on(event: Event) -> None:
        if isinstance(event, StageStarted) and (event.candidate, event.stage) == ("c01", "building"):
            run.decide("c01", "dismissed")

    events = play(run, on)
    assert builder.cut_off == ["c01"]
    assert judged(events) == ["c02"]
    assert stages(events, "c01")[-1] == "stopped"


def test_one_dismissed_and_taken_back_is_judged_all_the_same(bench: Bench, builder: Builder) -> None:
    builder.slow["a"] = asyncio.Event()
    run = bench.run(whole("a", "b"))

    def on(event: Event) -> None:
        if isinstance(event, StageStarted) and (event.candidate, event.stage) == ("c01", "building"):
            run.decide("c01", "dismissed")
            run.decide("c01", "none")

    assert sorted(judged(play(run, on))) == ["c01", "c02"]


def test_a_build_that_cannot_be_had_is_left_to_the_judgement(bench: Bench, builder: Builder) -> None:
    builder.slow["a"] = asyncio.Event()
    builder.fails = True
    assert sorted(judged(play(bench.run(whole("a", "b")), lambda event: None))) == ["c01", "c02"]


def test_stopping_a_run_ends_its_builds(bench: Bench, builder: Builder) -> None:
    builder.slow["a"] = builder.slow["b"] = asyncio.Event()
    run = bench.run(whole("a", "b"))
    stopping: list[asyncio.Task[None]] = []

    def on(event: Event) -> None:
        if isinstance(event, StageStarted) and (event.candidate, event.stage) == ("c02", "building"):
            stopping.append(asyncio.ensure_future(run.stop()))  # type: ignore[arg-type]

    events = play(run, on)
    assert sorted(builder.cut_off) == ["c01", "c02"]
    assert isinstance(events[-1], RunFinished)
    assert events[-1].reason == "stopped"
