"""Dismissing a candidate that has no verdict yet stops what is done on it, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from cudal1_core.events import CandidateWritten, Event, RunFinished, StageStarted, TokenArrived, VerdictReached
from cudal1_core.policies.base import Fragment, Prompt
from cudal1_core.recall import recall
from cudal1_core.rounds import Run

from tests.unit.scripted import Bench, ScriptedPolicy, code, whole


def play(run: Run, on: Callable[[Event], None]) -> list[Event]:
    """The whole run; `on` sees each event as it comes."""

    async def watch() -> list[Event]:
        events = []
        async for event in run.events():
            events.append(event)
            on(event)
        return events

    return asyncio.run(watch())


def stages(events: list[Event], candidate: str) -> list[str]:
    return [event.stage for event in events if isinstance(event, StageStarted) and event.candidate == candidate]


def judged(events: list[Event]) -> list[str]:
    return [event.candidate for event in events if isinstance(event, VerdictReached)]


def test_the_judgement_in_work_ends_and_the_next_candidate_is_judged(bench: Bench) -> None:
    run = bench.run(whole("a", "b"))
    bench.referee.gate = asyncio.Event()

    def on(event: Event) -> None:
        if isinstance(event, StageStarted) and (event.candidate, event.stage) == ("c01", "timing"):
            run.decide("c01", "dismissed")
            assert bench.referee.gate is not None
            bench.referee.gate.set()

    events = play(run, on)
    assert bench.referee.judged == ["c01", "c02"]
    assert judged(events) == ["c02"]
    assert stages(events, "c01")[-1] == "stopped"
    assert isinstance(events[-1], RunFinished)
    assert events[-1].reason == "done"


def test_one_that_waits_is_not_judged_unless_that_is_taken_back(bench: Bench) -> None:
    run = bench.run(whole("a", "b", "c"))

    def on(event: Event) -> None:
        if isinstance(event, CandidateWritten) and event.candidate.id in ("c02", "c03"):
            run.decide(event.candidate.id, "dismissed")
        if isinstance(event, VerdictReached) and event.candidate == "c01":
            run.decide("c03", "none")

    events = play(run, on)
    assert judged(events) == ["c01", "c03"]
    assert stages(events, "c02")[-1] == "stopped"


def test_one_taken_back_after_its_round_is_judged_in_the_next(bench: Bench) -> None:
    run = bench.run(whole("a", "b"), whole("c"), rounds=1, keep_open=True)
    ended = 0

    def on(event: Event) -> None:
        nonlocal ended
        if isinstance(event, CandidateWritten) and event.candidate.id == "c02":
            run.decide("c02", "dismissed")
        if isinstance(event, RunFinished):
            ended += 1
            if ended == 1:
                run.decide("c02", "none")
                run.extend(1)
            else:
                stopping.append(asyncio.ensure_future(run.close()))

    stopping: list[asyncio.Future[None]] = []
    assert judged(play(run, on)) == ["c01", "c02", "c03"]


@dataclass
class Dropping(ScriptedPolicy):
    dropped: list[tuple[Prompt, int]] = field(default_factory=list)
    release: asyncio.Event = field(default_factory=asyncio.Event)

    async def drop(self, prompt: Prompt, index: int) -> None:
        self.dropped.append((prompt, index))
        self.release.set()


@pytest.mark.parametrize("drops", [True, False])
def test_one_that_is_being_written_is_left_unwritten(bench: Bench, drops: bool) -> None:
    policy = Dropping([]) if drops else bench.policy
    bench.policy = policy
    wait: list[Fragment | Exception | asyncio.Event] = [policy.release] if isinstance(policy, Dropping) else []
    group = [Fragment(0, "first"), *wait, Fragment(0, "more"), Fragment(0, "", done=True), *whole("x", "b")[1:]]
    run = bench.run(group)

    def on(event: Event) -> None:
        if isinstance(event, TokenArrived) and event.text == "first":
            run.decide("c01", "dismissed")

    events = play(run, on)
    assert judged(events) == ["c02"]
    assert not any(stage in stages(events, "c01") for stage in ("building", "checking"))
    if isinstance(policy, Dropping):
        assert policy.dropped == [(policy.prompts[0], 0)]
        assert "more" not in [event.text for event in events if isinstance(event, TokenArrived)]


def test_a_run_that_goes_on_leaves_what_was_dismissed(bench: Bench) -> None:
    run = bench.run(whole("a", "b"))

    async def cut_off() -> None:
        async for event in run.events():
            if isinstance(event, CandidateWritten) and event.candidate.id == "c02":
                run.decide("c01", "dismissed")
                break

    asyncio.run(cut_off())
    assert bench.folder.path is not None
    known = recall(bench.folder.path / "events.jsonl")
    assert [candidate.id for candidate in known.unjudged] == ["c02"]
    assert known.unjudged[0].source.strip() == code("b").strip()
