"""A run tells everything, stores what it tells, and ends when it is asked to."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from cudal1_core.errors import PolicyError, RefereeError, UnjudgeableError, UsageError
from cudal1_core.events import (
    CandidateWritten,
    DecisionMade,
    Event,
    RoundFinished,
    RoundStarted,
    RunFinished,
    StageStarted,
    TokenArrived,
    TroubleMet,
    VerdictReached,
    from_json,
)
from cudal1_core.exemplars import ExemplarOptions
from cudal1_core.policies.base import Fragment, Prompt
from cudal1_core.verdict import Verdict

from tests.unit.scripted import Bench, Group, code, make_task, told, whole

E = TypeVar("E", bound=Event)


def accepted(speedup: float, *labels: str) -> Verdict:
    return Verdict("accepted", speedup=speedup, labels=labels)


def last(events: list[Event]) -> RunFinished:
    assert isinstance(events[-1], RunFinished)
    return events[-1]


def of(events: list[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def test_one_round_in_order(bench: Bench) -> None:
    bench.referee.verdicts = {"a": accepted(2.0), "b": Verdict("rejected", "wrong_result", "off by one")}
    events = asyncio.run(told(bench.run(whole("a", "b"))))
    names = [event.name for event in events]
    assert names[:4] == ["run_started", "task_described", "baseline_timed", "round_started"]
    mine = [event for event in events if getattr(event, "candidate", None) == "c01"]
    assert [event.stage for event in mine if isinstance(event, StageStarted)] == [
        "queued",
        "building",
        "checking",
        "timing",
    ]
    assert mine[-1].name == "verdict_reached"
    (finished,) = of(events, RoundFinished)
    assert (finished.accepted, finished.rejected, finished.best, finished.best_speedup) == (1, 1, "c01", 2.0)
    assert last(events).reason == "done"
    assert (bench.referee.closed, bench.policy.closed) == (1, 1)


def test_every_event_is_stored_before_it_is_seen(bench: Bench) -> None:
    path = bench.folder.events
    assert path is not None

    async def compare() -> None:
        count = 0
        async for event in bench.run(whole("a", "b"), whole("c")).events():
            lines = path.read_text("utf-8").splitlines()
            assert from_json(lines[count]) == event
            count += 1
        assert len(lines) == count

    asyncio.run(compare())
    source = bench.folder.source("c03")
    assert source is not None
    assert source.read_text("utf-8") == code("c")


def test_streams_are_told_piece_by_piece_and_put_together(bench: Bench) -> None:
    first, second = code("x")[:10], code("x")[10:]
    group: Group = [
        Fragment(1, first),
        Fragment(0, code("y"), done=True),
        Fragment(1, second),
        Fragment(1, "", done=True, title="late"),
    ]
    events = asyncio.run(told(bench.run(group)))
    tokens = [(event.candidate, event.text) for event in of(events, TokenArrived)]
    assert tokens == [("c01", first), ("c02", code("y")), ("c01", second)]
    written = {event.candidate.id: event.candidate for event in of(events, CandidateWritten)}
    assert written["c01"].source == code("x")
    assert written["c01"].title == "late"


def test_an_answer_cut_off_is_judged_as_it_stands(bench: Bench) -> None:
    events = asyncio.run(told(bench.run([Fragment(0, "no code here")])))
    (written,) = of(events, CandidateWritten)
    assert (written.candidate.source, written.candidate.text) == ("", "no code here")
    assert bench.referee.judged == ["c01"]


def test_a_stream_that_breaks_off_costs_one_candidate_and_not_the_run(bench: Bench) -> None:
    broke = PolicyError("it broke off", "the server died")
    group: Group = [
        Fragment(0, "half an ans"),
        Fragment(0, "", done=True, trouble=broke),
        Fragment(1, "", done=True, trouble=broke),  # nothing ever came of it
        Fragment(2, code("a"), done=True),
    ]
    events = asyncio.run(told(bench.run(group, whole("b"))))
    assert [event.candidate.text for event in of(events, CandidateWritten)] == ["half an ans", code("a"), code("b")]
    assert [(trouble.title, trouble.meaning) for trouble in of(events, TroubleMet)] == [
        ("it broke off", "the server died")
    ] * 2
    assert last(events).reason == "done"


def test_the_next_round_is_shown_what_the_last_one_found(bench: Bench) -> None:
    bench.referee.verdicts = {"a": accepted(1.0), "b": accepted(3.0), "c": Verdict("rejected", "crashed")}
    asyncio.run(told(bench.run(whole("a", "b", "c"), whole("d"))))
    first, second = bench.policy.prompts[:2]
    assert (first.round, first.exemplars, first.history) == (1, (), ())
    assert [judged.candidate.id for judged in second.exemplars] == ["c01", "c02"]
    assert [judged.candidate.id for judged in second.history] == ["c01", "c02", "c03"]
    assert "3.00x" in second.text
    assert first.seed != second.seed


def test_it_ends_early_when_the_policy_has_nothing_more(bench: Bench) -> None:
    events = asyncio.run(told(bench.run(whole("a"), rounds=9)))
    assert [event.round for event in of(events, RoundStarted)] == [1, 2]
    assert last(events).reason == "done"


def test_the_best_can_take_the_references_place(bench: Bench) -> None:
    bench.referee.verdicts = {"a": accepted(9.0, "not_drop_in"), "b": accepted(1.5)}
    events = asyncio.run(told(bench.run(whole("a", "b"))))
    assert (last(events).best, last(events).best_speedup) == ("c02", 1.5)


def test_the_same_code_twice_is_judged_once(bench: Bench) -> None:
    bench.referee.verdicts = {"a": accepted(2.0)}
    events = asyncio.run(told(bench.run(whole("a", "a"))))
    assert bench.referee.judged == ["c01"]
    assert [event.verdict for event in of(events, VerdictReached)] == [accepted(2.0)] * 2


def test_an_unsettled_verdict_is_sought_again(bench: Bench) -> None:
    bench.referee.verdicts = {"a": Verdict("unjudgeable", "no_device", "busy")}
    events = asyncio.run(told(bench.run(whole("a", "a"))))
    assert bench.referee.judged == ["c01", "c02"]
    assert (of(events, RoundFinished)[0].accepted, of(events, RoundFinished)[0].rejected) == (0, 0)


def test_writing_goes_on_while_a_candidate_is_judged(bench: Bench) -> None:
    async def play() -> list[str]:
        bench.referee.gate = asyncio.Event()
        names: list[str] = []
        async for event in bench.run(whole("a", "b")).events():
            names.append(f"{event.name} {getattr(event, 'candidate', '')}")
            if isinstance(event, CandidateWritten) and event.candidate.id == "c02":
                bench.referee.gate.set()
        return names

    names = asyncio.run(asyncio.wait_for(play(), 20))
    assert names.index("verdict_reached c01") > next(
        n for n, name in enumerate(names) if name.startswith("candidate_written") and "c02" in name
    )


@pytest.mark.parametrize(
    ("error", "title"),
    [
        (UnjudgeableError("bad_reference", "no Model", "found: Net", "use --model Net"), "no Model"),
        (RefereeError("the zygote died"), "the zygote died"),
        (ZeroDivisionError("oops"), "cudal1-tui itself failed"),
    ],
)
def test_a_reference_that_cannot_be_opened_fails_the_run(bench: Bench, error: Exception, title: str) -> None:
    bench.referee.task = error
    run = bench.run(whole("a"))
    events = asyncio.run(told(run))
    (trouble,) = of(events, TroubleMet)
    assert trouble.title == title
    assert last(events).reason == "failed"
    assert run.error is error
    assert bench.referee.closed == 1


def test_a_failure_of_the_referee_leaves_one_candidate_unjudged_and_is_told(bench: Bench) -> None:
    bench.referee.verdicts = {"a": accepted(2.0), "b": RefereeError("the worker died", "its last words")}
    events = asyncio.run(told(bench.run(whole("a", "b", "c"))))
    assert [event.verdict.verdict for event in of(events, VerdictReached)] == ["accepted", "unjudgeable", "accepted"]
    (trouble,) = of(events, TroubleMet)
    assert (trouble.title, trouble.meaning) == ("the worker died", "its last words")
    assert (last(events).reason, last(events).best) == ("done", "c01")


def test_a_referee_that_goes_on_failing_ends_the_run_and_keeps_what_was_found(bench: Bench) -> None:
    bench.referee.verdicts = {"a": accepted(2.0), **{word: RefereeError("the worker died") for word in "bcd"}}
    events = asyncio.run(told(bench.run(whole("a", "b", "c", "d", "e"))))
    assert len(of(events, VerdictReached)) == 3
    assert (last(events).reason, last(events).best) == ("failed", "c01")


def test_what_a_failing_policy_wrote_is_still_judged(bench: Bench) -> None:
    events = asyncio.run(told(bench.run([*whole("a"), PolicyError("server gone", "refused")])))
    assert [event.candidate for event in of(events, VerdictReached)] == ["c01"]
    (trouble,) = of(events, TroubleMet)
    assert (trouble.title, trouble.meaning) == ("server gone", "refused")
    assert last(events).reason == "failed"


def test_an_internal_error_leaves_its_traceback(bench: Bench) -> None:
    bench.referee.verdicts = {"a": ZeroDivisionError("oops")}
    (trouble,) = of(asyncio.run(told(bench.run(whole("a")))), TroubleMet)
    assert bench.folder.logs is not None
    assert "ZeroDivisionError: oops" in (bench.folder.logs / "traceback.txt").read_text()
    assert "traceback.txt" in trouble.next_step


def test_a_spent_budget_ends_the_run_after_the_verdict_in_work(bench: Bench) -> None:
    async def play() -> list[Event]:
        bench.referee.gate = asyncio.Event()
        run = bench.run(whole("a", "b"), whole("c"), budget_s=1000.0)
        events = []
        async for event in run.events():
            events.append(event)
            if event.name == "timing_sampled":
                run._watch._worked += 1000.0  # the time passes while c01 is judged
                bench.referee.gate.set()
        return events

    events = asyncio.run(asyncio.wait_for(play(), 20))
    assert [event.candidate for event in of(events, VerdictReached)] == ["c01"]
    assert last(events).reason == "budget"


def test_a_budget_ends_a_policy_that_never_answers(bench: Bench) -> None:
    async def play() -> list[Event]:
        return await told(bench.run([asyncio.Event()], budget_s=0.02))

    events = asyncio.run(asyncio.wait_for(play(), 20))
    assert last(events).reason == "budget"


def test_paused_nothing_is_judged_until_it_is_resumed(bench: Bench) -> None:
    async def play() -> None:
        bench.referee.gate = asyncio.Event()
        run = bench.run(whole("a", "b"), keep_open=True)
        stream = run.events()
        async for event in stream:
            if event.name == "timing_sampled":
                break
        run.pause()
        bench.referee.gate.set()
        async for event in stream:
            if isinstance(event, VerdictReached):
                break
        for _ in range(20):  # every ready task has had its turn
            await asyncio.sleep(0)
        assert run.paused
        assert bench.referee.judged == ["c01"]
        run.resume()
        async for event in stream:
            if isinstance(event, RunFinished):
                break
        assert bench.referee.judged == ["c01", "c02"]
        await run.close()

    asyncio.run(asyncio.wait_for(play(), 20))


def test_stop_in_the_middle_of_a_judgement_ends_children_and_tells(bench: Bench) -> None:
    async def play() -> list[Event]:
        bench.referee.gate = asyncio.Event()  # never set
        run = bench.run(whole("a"))
        events = []
        async for event in run.events():
            events.append(event)
            if event.name == "timing_sampled":
                await asyncio.gather(run.stop(), run.stop())
        return events

    events = asyncio.run(asyncio.wait_for(play(), 20))
    assert last(events).reason == "stopped"
    assert (bench.referee.closed, bench.policy.closed) == (1, 1)


def test_stop_does_not_wait_for_a_child_that_will_not_end(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cudal1_core.rounds.STOP_S", 0.05)

    async def never() -> None:
        await asyncio.Event().wait()

    async def play() -> list[Event]:
        monkeypatch.setattr(bench.referee, "close", never)
        return await told(bench.run(whole("a")))

    assert last(asyncio.run(asyncio.wait_for(play(), 20))).reason == "done"


def test_leaving_the_stream_early_ends_the_children(bench: Bench) -> None:
    async def play() -> None:
        bench.referee.gate = asyncio.Event()
        stream = bench.run(whole("a")).events()
        async for event in stream:
            if event.name == "timing_sampled":
                break
        await stream.aclose()  # type: ignore[attr-defined]

    asyncio.run(asyncio.wait_for(play(), 20))
    assert (bench.referee.closed, bench.policy.closed) == (1, 1)


def test_kept_open_it_takes_decisions_and_more_rounds(bench: Bench) -> None:
    bench.referee.verdicts = {"a": accepted(1.2), "b": accepted(1.3), "c": accepted(9.0), "d": accepted(2.0)}

    async def play() -> list[Event]:
        options = {"keep_open": True, "exemplars": ExemplarOptions(count=2)}
        run = bench.run(whole("a", "b", "c"), whole("d"), rounds=1, **options)
        events = []
        endings = 0
        async for event in run.events():
            events.append(event)
            if isinstance(event, RunFinished):
                endings += 1
                if endings == 1:
                    run.decide("c01", "fed")
                    run.decide("c03", "dismissed")
                    run.extend(1)
                else:
                    await run.close()
        return events

    events = asyncio.run(asyncio.wait_for(play(), 20))
    assert [(event.candidate, event.decision) for event in of(events, DecisionMade)] == [
        ("c01", "fed"),
        ("c03", "dismissed"),
    ]
    assert [judged.candidate.id for judged in bench.policy.prompts[1].exemplars] == ["c01", "c02"]
    assert [judged.fed for judged in bench.policy.prompts[1].history] == [True, False, False]
    endings = of(events, RunFinished)
    assert [ending.best for ending in endings] == ["c03", "c04"]


def test_more_rounds_lift_a_spent_budget(bench: Bench) -> None:
    async def play() -> list[str]:
        run = bench.run([asyncio.Event()], whole("a"), rounds=1, budget_s=0.02, keep_open=True)
        reasons = []
        async for event in run.events():
            if isinstance(event, RunFinished):
                reasons.append(event.reason)
                if len(reasons) == 1:
                    run.extend(1)
                else:
                    await run.close()
        return reasons

    assert asyncio.run(asyncio.wait_for(play(), 20)) == ["budget", "done"]


def test_a_run_that_was_stopped_cannot_be_extended(bench: Bench) -> None:
    async def play() -> None:
        run = bench.run(whole("a"), keep_open=True)
        async for event in run.events():
            if isinstance(event, RoundStarted):
                await run.stop()
                run.decide("c01", "kept")  # still stored
                with pytest.raises(UsageError):
                    run.extend(1)
                await run.close()

    asyncio.run(asyncio.wait_for(play(), 20))
    assert bench.folder.events is not None
    assert '"decision": "kept"' in bench.folder.events.read_text()


def test_what_earlier_runs_found_is_shown_but_is_not_history(bench: Bench) -> None:
    bench.referee.verdicts = {"a": accepted(2.0)}
    asyncio.run(told(bench.run(whole("a"))))
    bench.folder = replace(bench.folder, id="second")
    bench.referee.verdicts = {}
    asyncio.run(told(bench.run(whole("b"))))
    prompt = next(prompt for prompt in bench.policy.prompts[::-1] if prompt.round == 1)
    assert len(prompt.exemplars) == 1
    assert prompt.exemplars[0].candidate.id.endswith("/c01")
    assert prompt.history == ()


def test_where_nothing_can_be_written_trouble_is_told_once_and_work_goes_on(bench: Bench) -> None:
    bench.archive.close()
    bench.folder = replace(bench.folder, path=bench.folder.path / "gone" if bench.folder.path else None)
    events = asyncio.run(told(bench.run(whole("a", "b"), whole("c"))))
    (trouble,) = of(events, TroubleMet)
    assert trouble.title == "This run is not being stored"
    assert [event.candidate for event in of(events, VerdictReached)] == ["c01", "c02", "c03"]
    assert last(events).reason == "done"


def test_a_full_disk_is_told_once_and_the_archive_goes_on(bench: Bench) -> None:
    assert bench.folder.events is not None
    bench.folder.events.symlink_to("/dev/full")
    events = asyncio.run(told(bench.run(whole("a", "b"))))
    (trouble,) = of(events, TroubleMet)
    assert "No space left on device" in trouble.meaning
    assert [judged.candidate.source for judged in bench.archive.earlier(make_task(), "later")] == [
        code("b"),
        code("a"),
    ]


def test_a_prompt_too_long_for_the_policy_gives_up_exemplars_and_keeps_the_task(bench: Bench) -> None:
    bench.referee.verdicts = {"a": accepted(1.0), "b": accepted(3.0)}
    whole_prompt = len(asyncio.run(_prompts(bench))[1].text)
    bench.policy.room = whole_prompt - 1
    second = asyncio.run(_prompts(bench))[-1]
    assert [judged.candidate.id for judged in second.exemplars] == ["c02"]
    assert make_task().source.strip() in second.text


async def _prompts(bench: Bench) -> list[Prompt]:
    await told(bench.run(whole("a", "b"), whole("c"), exemplars=ExemplarOptions(count=2)))
    return bench.policy.prompts


def test_a_rejected_candidate_goes_back_to_a_policy_that_converses(bench: Bench) -> None:
    bench.policy.converses = True
    bench.referee.verdicts = {
        "bad": Verdict("rejected", "build_failed", "no nvcc"),
        "still": Verdict("rejected", "crashed"),
    }
    events = asyncio.run(told(bench.run(whole("bad"), whole("still"), whole("good"), rounds=1, repair=2)))
    first, second, third = bench.policy.prompts
    assert first.text == second.text == third.text
    assert [len(prompt.turns) for prompt in (first, second, third)] == [0, 1, 2]
    assert (second.turns[0].answer, "no nvcc" in second.turns[0].reply) == (code("bad"), True)
    written = [event.candidate for event in of(events, CandidateWritten)]
    assert [(one.id, one.repairs, one.prompt) for one in written] == [
        ("c01", "", ""),
        ("c02", "c01", third.turns[0].reply),
        ("c03", "c02", third.turns[1].reply),
    ]
    assert of(events, RoundFinished)[0].rejected == 2
    assert last(events).best == "c03"


def test_repairs_stop_at_their_number_and_are_not_asked_of_what_cannot_converse(bench: Bench) -> None:
    bench.referee.verdicts = {"bad": Verdict("rejected", "crashed")}
    asyncio.run(told(bench.run(whole("bad"), whole("never"), rounds=1, repair=3)))
    assert bench.referee.judged == ["c01"]


def test_an_adapter_goes_to_a_policy_that_takes_it_and_to_no_other(bench: Bench) -> None:
    class Adapting(type(bench.policy)):  # type: ignore[misc]
        taken: tuple[Path, ...] = ()

        async def adapt(self, adapter: Path) -> None:
            self.taken += (adapter,)

    with pytest.raises(UsageError, match="takes no adapter"):
        asyncio.run(bench.run().adapt(Path("a")))
    bench.policy = Adapting([])
    asyncio.run(bench.run().adapt(Path("a")))
    assert bench.policy.taken == (Path("a"),)
