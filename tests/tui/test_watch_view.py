"""The workbench over a watch: the newest save in view, a fresh view for each run, accepted files told of."""

from __future__ import annotations

from pathlib import Path

from cudal1_core.events import AcceptedJudged, ReferenceSeen, RunStarted, TroubleMet, WatchStarted

from tests.tui import recorded
from tests.tui.conftest import Opened

STARTED = WatchStarted(paths=("/w/models",), references=3, how="inotify")


def run_started(run: str) -> RunStarted:
    return RunStarted(
        run=run, reference="/w/models/a.py", policy="p", device="cpu", rounds=1, group=1, budget_s=None, folder=""
    )


async def test_a_watch_that_waits_says_so(opened: Opened, size: tuple[int, int]) -> None:
    async with opened(size) as desk:
        assert "watching" not in desk.seen
        await desk.tell([STARTED])
        assert "waiting for a reference to be saved" in desk.seen
        assert "watching models (3 references)" in desk.seen


async def test_what_does_not_parse_stays_in_view(opened: Opened, size: tuple[int, int]) -> None:
    async with opened(size) as desk:
        seen = ReferenceSeen(path="/w/models/a.py", state="unreadable", message="a.py:3: '(' was never closed")
        await desk.tell([STARTED, seen])
        assert "a.py:3: '(' was never closed; waits" in desk.seen
        await desk.tell([ReferenceSeen(path="/w/models/a.py", state="changed")])
        assert "never closed" not in desk.seen


async def test_the_next_run_begins_with_an_empty_list(opened: Opened) -> None:
    async with opened() as desk:
        await desk.tell([STARTED, *recorded.opening("/w/models/b.py"), *recorded.first_round()])
        assert desk.view.rows
        await desk.tell([run_started("another")])
        assert not desk.view.rows
        assert desk.view.watch is not None
        assert desk.view.running
        await desk.press("u")  # what was decided in the run before is not taken back here
        assert "Nothing to undo." in desk.said[-1]


async def test_a_file_that_is_no_longer_right_is_told_at_once(opened: Opened, size: tuple[int, int]) -> None:
    async with opened(size) as desk:
        path = str(Path("/w/models/a_optimized.py"))
        wrong = AcceptedJudged(path=path, reference="/w/models/a.py", state="wrong", was=3.0, reason="differs")
        trouble = TroubleMet(title="a_optimized.py is no longer right", meaning="differs")
        await desk.tell([STARTED, run_started("r"), wrong, trouble])
        assert "a_optimized.py: wrong (was 3.00x)" in desk.seen
        assert "a_optimized.py is no longer right" in desk.seen
