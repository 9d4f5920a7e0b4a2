"""A headless run: what goes to which stream, the file it writes, and its exit status."""

from __future__ import annotations

import asyncio
import io
import os
import signal
from pathlib import Path

import pytest
from cudal1_core.errors import PolicyError, RefereeError, UnjudgeableError
from cudal1_core.events import Event, RunFinished, from_json
from cudal1_core.rounds import Run
from cudal1_core.verdict import Verdict
from rich.console import Console

from cudal1_tui.headless import drive, print_json
from cudal1_tui.progress import Progress
from tests.unit.scripted import Bench, Group, code, whole

FAST = Verdict("accepted", speedup=2.5, speedup_interval=(2.4, 2.6), candidate_ms=0.4, reference_ms=1.0)


def play(run: Run, out: Path | None = None, overwrite: bool = False) -> tuple[int, list[Event]]:
    events: list[Event] = []
    status = asyncio.run(asyncio.wait_for(drive(run, events.append, out, overwrite), 20))
    return status, events


def open_run(bench: Bench, *groups: Group) -> Run:
    return bench.run(*groups, keep_open=True)


def shown(bench: Bench, run: Run, out: Path | None = None) -> tuple[str, str]:
    """What a person reads on standard error and standard output."""
    errors, output = io.StringIO(), io.StringIO()
    progress = Progress(run, Console(file=errors, soft_wrap=True), Console(file=output, width=120, highlight=False))
    with progress:
        asyncio.run(drive(run, progress.tell, out, False))
    progress.print_result(out)
    return errors.getvalue(), output.getvalue()


def test_status_0_when_something_was_accepted(bench: Bench) -> None:
    bench.referee.verdicts = {"a": Verdict("rejected", "crashed", "it crashed")}
    status, events = play(open_run(bench, whole("a", "b")))
    assert status == 0
    assert isinstance(events[-1], RunFinished)


def test_status_1_when_nothing_was(bench: Bench) -> None:
    bench.referee.verdicts = {"a": Verdict("rejected", "crashed", "it crashed")}
    assert play(open_run(bench, whole("a")))[0] == 1


@pytest.mark.parametrize(
    ("error", "status"),
    [(UnjudgeableError("bad_reference", "no Model"), 2), (RefereeError("lost"), 3), (ValueError("bug"), 3)],
)
def test_status_2_for_the_reference_and_3_for_us(bench: Bench, error: Exception, status: int) -> None:
    bench.referee.task = error
    assert play(open_run(bench))[0] == status


def test_candidates_that_cannot_be_read_have_status_2(bench: Bench) -> None:
    assert play(open_run(bench, [PolicyError("No candidates in x")]))[0] == 2


def test_out_gets_the_best_and_the_decision_is_told(bench: Bench, tmp_path: Path) -> None:
    bench.referee.verdicts = {"b": FAST}
    out = tmp_path / "fast.py"
    status, events = play(open_run(bench, whole("a", "b")), out)
    assert status == 0
    assert code("b") in out.read_text()
    told = [event for event in events if event.name == "decision_made"]
    assert [(event.candidate, event.decision, event.path) for event in told] == [("c02", "kept", str(out))]  # type: ignore[attr-defined]


def test_out_stays_unwritten_where_nothing_fits_in_the_references_place(bench: Bench, tmp_path: Path) -> None:
    bench.referee.verdicts = {"a": Verdict("accepted", speedup=3.0, labels=("not_drop_in",))}
    out = tmp_path / "fast.py"
    assert play(open_run(bench, whole("a")), out)[0] == 1
    assert not out.exists()


def test_out_never_replaces_a_file_that_came_meanwhile(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "fast.py"
    out.write_text("mine")
    assert play(open_run(bench, whole("a")), out)[0] == 1
    assert out.read_text() == "mine"
    assert "could not be written" in capsys.readouterr().err
    bench.referee.verdicts = {}
    bench.folder = bench.folder.__class__("again", None)
    assert play(open_run(bench, whole("a")), out, overwrite=True)[0] == 0
    assert code("a") in out.read_text()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_run_in_order(bench: Bench, number: signal.Signals, status: int) -> None:
    async def interrupted() -> tuple[int, list[Event]]:
        bench.referee.gate = asyncio.Event()  # the judgement never ends by itself
        events: list[Event] = []

        def tell(event: Event) -> None:
            events.append(event)
            if event.name == "timing_sampled":
                os.kill(os.getpid(), number)

        return await drive(open_run(bench, whole("a")), tell, None, False), events

    got, events = asyncio.run(asyncio.wait_for(interrupted(), 20))
    assert got == status
    assert isinstance(events[-1], RunFinished)
    assert events[-1].reason == "stopped"
    assert (bench.referee.closed, bench.policy.closed) == (1, 1)


def test_a_reader_that_goes_away_ends_the_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cudal1_tui.headless.os.dup2", lambda *descriptors: None)
    monkeypatch.setattr("sys.stdout", os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))

    def gone(event: Event) -> None:
        raise BrokenPipeError

    assert asyncio.run(drive(open_run(bench, whole("a")), gone, None, False)) == 141
    assert bench.referee.closed == 1


def test_json_is_one_event_a_line_and_nothing_else(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[Event] = []

    def tell(event: Event) -> None:
        seen.append(event)
        print_json(event)

    asyncio.run(drive(open_run(bench, whole("a"), [*whole("ü")]), tell, None, False))
    captured = capfd.readouterr()
    assert [from_json(line) for line in captured.out.splitlines()] == seen
    assert captured.err == ""


def test_people_read_one_line_a_verdict_and_a_table(bench: Bench) -> None:
    bench.referee.verdicts = {"a": Verdict("rejected", "wrong_result", "off by [bold]7"), "b": FAST}
    errors, output = shown(bench, open_run(bench, whole("a", "b")))
    assert "c01 wrong result a: off by [bold]7" in errors
    assert "c02 accepted 2.50x [2.40–2.60] b" in errors
    rows = [line.split() for line in output.splitlines()]
    assert rows[0][:3] == ["candidate", "verdict", "speedup"]
    assert rows[1] == ["c02", "accepted", "2.50x", "[2.40–2.60]", "0.400", "ms", "b"]
    assert rows[2][:3] == ["c01", "wrong", "result"]
    assert "Best: c02, 2.50x." in output
    assert "Add --out FILE" in output


def test_people_are_told_where_it_was_written(bench: Bench, tmp_path: Path) -> None:
    bench.referee.verdicts = {"a": FAST}
    errors, output = shown(bench, open_run(bench, whole("a")), tmp_path / "fast.py")
    assert f"Best: c01, 2.50x, written to {tmp_path / 'fast.py'}." in output
    assert "c01 written to" in errors


def test_people_are_told_when_nothing_is_faster_or_nothing_is_there(bench: Bench) -> None:
    bench.referee.verdicts = {"a": Verdict("accepted", speedup=0.8)}
    assert "No candidate is faster than model.py" in shown(bench, open_run(bench, whole("a")))[1]
    bench.folder = bench.folder.__class__("again", None)
    bench.referee.verdicts = {"a": Verdict("rejected", "crashed", "x")}
    assert "Nothing was accepted" in shown(bench, open_run(bench, whole("a")))[1]
    bench.folder = bench.folder.__class__("third", None)
    assert "no candidate was judged; nothing is left to try" in shown(bench, open_run(bench))[1]


def test_trouble_is_told_with_its_next_step(bench: Bench) -> None:
    bench.referee.task = UnjudgeableError("bad_reference", "no Model here", "found Net", "use --model Net")
    errors, output = shown(bench, open_run(bench))
    for words in ("no Model here", "found Net", "use --model Net"):
        assert words in errors
    assert output == ""


def test_escapes_in_a_title_never_reach_the_terminal(bench: Bench) -> None:
    group = whole("a")
    bench.referee.verdicts = {"a": Verdict("rejected", "crashed", "\x1b]0;owned\x07\x1b[2Jboom")}
    errors, output = shown(bench, open_run(bench, group))
    assert "boom" in errors
    assert "\x1b" not in errors + output
    assert "owned" not in errors
