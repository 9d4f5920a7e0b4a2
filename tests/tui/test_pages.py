"""Pages about the whole run are made from its events alone, and foreign text cannot break them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from cudal1_core.events import DecisionMade, RoundStarted
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from cudal1_tui.actions import ACTIONS
from cudal1_tui.cli import main
from cudal1_tui.pages import page
from cudal1_tui.plot import plot
from cudal1_tui.rows import Rows
from cudal1_tui.scale import scale_for
from cudal1_tui.state import reduce
from cudal1_tui.view import View, select
from cudal1_tui.views import PAGES
from cudal1_tui.widgets.code_stream import CodeStream
from cudal1_tui.widgets.text_pane import TextPane
from tests.tui import recorded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cudal1_core.events import Event

    from tests.tui.conftest import Opened

Size = tuple[int, int]


def after(events: Iterable[Event]) -> View:
    view = View()
    for event in events:
        view = reduce(view, event, 0.0)
    return view


@pytest.fixture
def middle() -> View:
    return after(recorded.middle("/home/me/softmax.py"))


def test_the_plot_has_a_mark_for_each_candidate_at_its_height(middle: View) -> None:
    lines = page("progress", middle, 80, 30).plain.splitlines()
    plot = [line for line in lines if "│" in line]
    accepted = [row for row in middle.rows if row.verdict and row.verdict.accepted]
    marks = {(level, line.index(mark)) for level, line in enumerate(plot) for mark in "●" if mark in line}
    assert len(marks) == 1
    assert sum(line.count("✓") + line.count("●") for line in plot) == len(accepted)
    best = next(level for level, line in enumerate(plot) if "●" in line)
    assert all(line.find("✓") < 0 or level >= best for level, line in enumerate(plot))
    assert "!" not in "".join(plot)
    rejected = sum(row.verdict is not None and not row.verdict.accepted for row in middle.rows)
    assert next(line for line in lines if "└" in line).count("✗") == rejected


def test_one_that_may_not_be_best_is_marked_so_in_the_plot() -> None:
    view = after([*recorded.middle("/home/me/softmax.py"), *recorded.rest()])
    plot = [line for line in page("progress", view, 80, 30).plain.splitlines() if "│" in line]
    assert sum(line.count("!") for line in plot) == 1


@given(st.lists(st.floats(1e-4, 1e5), min_size=1, max_size=20))
def test_the_scale_holds_every_speedup_and_1x(speedups: list[float]) -> None:
    scale = scale_for(speedups)
    assert all(0 <= scale.height(speedup) <= 1 for speedup in [*speedups, 1.0])
    assert scale.height(min(speedups)) <= scale.height(1.0) or min(speedups) > 1.0
    assert all(scale.low <= tick <= scale.high for tick in scale.ticks())


def test_twice_as_fast_lies_as_far_from_1x_as_half_as_fast() -> None:
    scale = scale_for([0.25, 4.0])
    up, down = scale.height(2.0) - scale.height(1.0), scale.height(1.0) - scale.height(0.5)
    assert up == pytest.approx(down)


def test_the_line_of_the_best_rises_where_a_better_one_is_accepted(middle: View) -> None:
    lines = [line.plain for line in plot(middle, 80, 20)]
    assert len(lines) <= 20
    foot = next(n for n, line in enumerate(lines) if "╯" in line)
    head = next(n for n, line in enumerate(lines) if "╭" in line)
    assert head < foot
    assert lines[head].index("╭") == lines[foot].index("╯") == lines[head].index("●") - 1


def test_progress_tells_what_each_round_brought() -> None:
    view = after([*recorded.middle("/home/me/softmax.py"), *recorded.rest()])
    lines = page("progress", view, 80, 40).plain.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("round"))
    rounds = [line.split() for line in lines[at + 1 :]]
    assert rounds == [["1", "5", "3", "c03", "2.31x", "c03", "2.31x"], ["2", "5", "3", "c08", "2.05x", "c03", "2.31x"]]


@pytest.mark.parametrize("width", [30, 80, 200])
def test_the_plot_never_outgrows_its_pane(middle: View, width: int) -> None:
    rows = Rows(replace(row, id=f"{row.id}-{n}") for n in range(100) for row in middle.rows)
    lines = page("progress", replace(middle, rows=rows), width, 20).plain.splitlines()
    plot = [line for line in lines if "│" in line or "└" in line]
    assert max(map(cell_len, plot)) <= width
    assert any("do not fit" in line for line in lines)


def test_each_technique_has_its_count_and_its_best(middle: View) -> None:
    names = {"c01": ("fusion",), "c03": ("fusion", "layout"), "c05": ("layout",), "c04": ("graphs",)}
    rows = tuple(
        replace(row, candidate=replace(row.candidate, techniques=names.get(row.id, ()))) if row.candidate else row
        for row in middle.rows
    )
    lines = page("techniques", replace(middle, rows=rows), 80, 30).plain.splitlines()
    found = {line.split()[0]: line.split()[1:] for line in lines[1:4]}
    assert found["fusion"] == ["2", "2", "2.31x", "c03"]
    assert found["layout"] == ["2", "1", "2.31x", "c03"]
    assert found["graphs"] == ["1", "0", "–"]


def test_a_decision_told_twice_is_made_once(middle: View) -> None:
    kept = DecisionMade(candidate="c03", decision="kept", path="/home/me/softmax_optimized.py")
    before = len(middle.history)
    view = after([*recorded.middle("/home/me/softmax.py"), kept, kept, DecisionMade(candidate="c03", decision="none")])
    assert [made.decision for made in view.history[before:]] == ["kept", "none"]
    first, second = page("decisions", view, 80, 30).plain.splitlines()[:2]
    assert "taken back" in first
    assert "softmax_optimized.py" in second


def test_the_prompt_is_that_of_the_selected_candidates_round(middle: View) -> None:
    view = reduce(middle, RoundStarted(round=1, exemplars=("c01",), prompt="ask of round one"), 0.0)
    text = page("prompt", select(view, "c01"), 80, 30).plain
    assert "ask of round one" in text
    assert "exemplar c01" in text


@pytest.mark.parametrize("name", PAGES)
def test_an_empty_page_says_what_will_be_there(name: str) -> None:
    assert page(name, View(), 60, 20).plain.strip()


@pytest.mark.parametrize("name", PAGES)
async def test_foreign_text_is_drawn_as_text(opened: Opened, size: Size, name: str) -> None:
    events: list[Event] = []
    for event in recorded.middle("/home/me/softmax.py"):
        hostile = recorded.HOSTILE + "x" * 100_000
        asked = isinstance(event, RoundStarted)
        events.append(replace(event, prompt=hostile, exemplars=(recorded.HOSTILE,)) if asked else event)
    async with opened(size) as desk:
        await desk.tell(events)
        desk.session.view = replace(
            desk.view, rows=Rows(replace(row, text=recorded.HOSTILE + "y" * 100_000) for row in desk.view.rows)
        )
        await desk.press(str(PAGES.index(name) + 3))
        assert "\x1b" not in desk.seen
        assert "\x08" not in desk.seen
        if name in ("prompt", "answer"):
            assert "[bold red]not markup[/]" in desk.seen
        assert {cell_len(line) for line in desk.seen.splitlines()} == {size[0]}


@pytest.mark.parametrize("name", PAGES)
async def test_a_key_shows_the_page_and_1_goes_back(opened: Opened, size: Size, name: str) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press(str(PAGES.index(name) + 3))
        pane = desk.app.workbench.query_one("#page", TextPane)
        assert pane.display
        assert not desk.app.workbench.query_one(CodeStream).display
        assert pane.size.height >= 8
        await desk.press("1")
        assert not pane.display
        assert desk.app.workbench.query_one(CodeStream).display


async def test_a_page_can_be_enlarged(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press("4")
        desk.app.workbench.query_one("#page").focus()
        await desk.press("z")
        assert desk.app.workbench.query_one("#page").outer_size == (size[0], size[1] - 3)


async def test_shift_d_compares_with_the_best_and_the_marked_candidate(opened: Opened) -> None:
    async with opened() as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        code = desk.app.workbench.query_one(CodeStream)
        await desk.select("c01")
        other = replace(desk.row("c01").candidate, source="slow = 1\n")
        rows = Rows(replace(row, candidate=other) if row.id == "c01" else row for row in desk.view.rows)
        desk.session.view = replace(desk.view, rows=rows)
        await desk.press("m")
        await desk.select("c03")
        await desk.press("d")
        assert "--- marked c01" in code.text
        assert "-slow = 1" in code.text
        await desk.press("D")
        assert "--- reference" in code.text
        await desk.press("D")
        assert code.text == "The same text as the best c03."
        await desk.press("D")
        assert "--- marked c01" in code.text


def test_keys_prints_every_action(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.rstrip().endswith(action.tooltip) for line, action in zip(lines, ACTIONS, strict=True)].count(
        False
    ) == 0


def test_a_reader_that_leaves_early_is_no_fault() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "cudal1_tui", "keys"], stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


async def test_the_view_that_is_shown_stands_out_among_the_views(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press("b")
        for key, pane, name in (("3", "page", "3 evidence"), ("1", "code", "1 code"), ("8", "page", "8 answer")):
            await desk.press(key)
            widget = desk.app.workbench.query_one(f"#{pane}")
            parts = [part for part in (widget._border_title, widget._border_subtitle) if part is not None]
            lit = [
                part.plain[span.start : span.end]
                for part in parts
                for span in part.spans
                if span.style == "$primary bold"
            ]
            assert lit == [name]
