"""The second line says what is done, what comes next, and what waits for the person."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from cudal1_core.events import PolicyLoading, RoundStarted, RunFinished
from rich.cells import cell_len

from cudal1_tui.actions import ACTIONS, key_name
from cudal1_tui.rows import Rows
from cudal1_tui.state import reduce
from cudal1_tui.view import View, select
from cudal1_tui.widgets.now_line import now
from cudal1_tui.widgets.reference_pane import facts
from tests.tui import recorded

if TYPE_CHECKING:
    from cudal1_core.events import Event

    from tests.tui.conftest import Opened

KEYS = {action.id: key_name(action.keys[0]) for action in ACTIONS}
PATH = "/home/me/softmax.py"


def after(events: list[Event]) -> View:
    view = View()
    for event in events:
        view = reduce(view, event, 0.0)
    return view


def line(view: View, *, paused: bool = False, width: int = 120, wall: float = recorded.START + 85) -> str:
    return now(view, paused=paused, wall=wall, keys=KEYS, width=width).plain


def test_before_the_task_is_read_the_policys_loading_is_told() -> None:
    view = after([recorded.opening(PATH)[0], PolicyLoading(what="reading the weights")])
    assert "reading the reference, and timing it; the policy is reading the weights" in line(view)
    assert "the policy is" not in line(reduce(view, PolicyLoading(what=""), 0.0))


def test_in_the_middle_it_names_work_what_follows_and_the_undecided_best() -> None:
    told = line(after(recorded.middle(PATH)))
    assert told.startswith(" timing c08, block 9, writing c10 · next c09 · then round 3 of 3")
    assert told.rstrip().endswith("decide ● c03 2.31x  b goes to it")


def test_a_stage_that_takes_long_tells_for_how_long() -> None:
    events = [event for event in recorded.middle(PATH) if getattr(event, "candidate", "") != "c08"]
    at_work = replace(recorded.judged(recorded.candidate("c11", 2, "x"), recorded.accepted(1.0, 0.1))[3])
    view = after([*events, at_work])
    assert "building c11" in line(view, wall=recorded.START + 1)
    assert "building c11, 41 s" in line(view, wall=recorded.START + 41)


def test_a_pause_waits_for_the_verdict_in_work() -> None:
    view = after(recorded.middle(PATH))
    assert "pauses once c08 is judged" in line(view, paused=True)
    idle = replace(view, rows=Rows(view.rows[:7]))
    assert "paused; space goes on" in line(idle, paused=True)


def test_the_end_says_what_can_be_done() -> None:
    view = after([*recorded.middle(PATH), *recorded.rest()])
    assert "done: 6 of 10 accepted · n one more round" in line(view)
    assert "a accepts it" in line(select(view, "c03"))
    best = replace(view.rows[2], decision="kept", path="/home/me/softmax_optimized.py")
    kept = replace(view, rows=view.rows.put(best))
    assert "✓ c03 is in softmax_optimized.py" in line(kept)


def test_a_run_that_failed_says_how_to_leave() -> None:
    failed = after([*recorded.opening(PATH)[:1], RunFinished(reason="failed", best=None, best_speedup=None)])
    assert "a fault ended the run; all that was found is kept · q leaves" in line(failed)
    assert "was not read" in facts(failed, "softmax.py", 80).plain


def test_without_a_best_the_reasons_are_counted() -> None:
    build = recorded.rejected("build_failed", "SyntaxError")
    told = [*recorded.opening(PATH), RoundStarted(round=1, exemplars=())]
    for id in ("c01", "c02"):
        told += recorded.judged(recorded.candidate(id, 1, "x"), build)
    told.append(RunFinished(reason="done", best=None, best_speedup=None))
    assert "done, nothing to take: build failed 2" in line(after(told))


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_it_never_outgrows_its_row(width: int) -> None:
    for view in (View(), after(recorded.opening(PATH)), after(recorded.middle(PATH))):
        assert cell_len(line(view, width=width)) <= width


async def test_a_terminal_that_has_shown_other_things_is_painted_whole(opened: Opened) -> None:
    async with opened() as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        painted = []
        display = desk.app._display
        desk.app._display = lambda screen, drawn: (painted.append(drawn), display(screen, drawn))[1]  # type: ignore[method-assign]
        desk.app.app_resume_signal.publish(desk.app)
        await desk.pilot.pause(0.1)
        lines = {y for drawn in painted if hasattr(drawn, "spans") for y, _, _ in drawn.spans}
        assert lines == set(range(50)) or any(hasattr(drawn, "strips") for drawn in painted)
