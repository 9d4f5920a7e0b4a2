"""Streams are followed, foreign text stays text, and every size and theme can be drawn."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from cudal1_core.events import TokenArrived
from rich.cells import cell_len

from cudal1_tui.rows import Rows
from cudal1_tui.screens.workbench import ZOOM
from cudal1_tui.widgets.candidate_list import CandidateList, columns_for
from cudal1_tui.widgets.code_stream import CodeStream
from tests.tui import recorded

if TYPE_CHECKING:
    from pathlib import Path

    from tests.tui.conftest import Opened

Size = tuple[int, int]


async def test_text_is_followed_as_it_streams(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.opening(str(desk.reference)))
        for number in range(90):
            await desk.tell([TokenArrived(candidate="c01", text=f"import line{number}\n")])
            assert f"import line{number}" in desk.seen


async def test_following_stops_when_the_person_scrolls_up(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        lines = [TokenArrived(candidate="c01", text=f"import line{number}\n") for number in range(90)]
        await desk.tell([*recorded.opening(str(desk.reference)), *lines])
        code = desk.app.workbench.query_one(CodeStream)
        code.focus()
        await desk.press("home")
        await desk.tell([TokenArrived(candidate="c01", text="import late\n")])
        assert "import line0" in desk.seen
        assert "import late" not in desk.seen


async def test_text_waits_for_a_frame_and_facts_do_not(opened: Opened) -> None:
    async with opened() as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        drawn = []
        desk.app.workbench.draw = lambda: drawn.append(desk.view.rows[-1].text)  # type: ignore[method-assign]
        await desk.tell([TokenArrived(candidate="c10", text=letter) for letter in "max(x)"])
        assert len(drawn) == 1
        assert drawn[0].endswith("max(x)")


async def test_a_token_draws_no_line_of_the_list_again(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        drawn: list[int] = []
        listed = desk.app.workbench.query_one(CandidateList)
        listed.refresh_lines = lambda y, count=1: drawn.append(y)  # type: ignore[method-assign, assignment]
        await desk.tell([TokenArrived(candidate="c10", text="y")])
        assert drawn == []
        await desk.tell([TokenArrived(candidate="c10", text="y" * 200)])
        assert drawn == [10]


async def test_hostile_text_is_shown_and_breaks_nothing(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        for view in "123":
            await desk.press(view)
            await desk.select("c07")
            lines = desk.seen.splitlines()
            assert [cell_len(line) for line in lines] == [size[0]] * size[1]
            assert "[bold red]not" in desk.seen
            assert "\x1b" not in desk.seen


async def test_hostile_ids_titles_and_reasons_are_text(opened: Opened) -> None:
    async with opened() as desk:
        bad = recorded.candidate("[/]c\x1b[2J", 1, recorded.HOSTILE)
        verdict = recorded.rejected("wrong_result", recorded.HOSTILE, recorded.Check("[b]", False, "[/nope]"))
        await desk.tell([*recorded.opening(str(desk.reference)), *recorded.judged(bad, verdict)])
        assert "✗ [b]  [/nope]" in desk.seen
        await desk.press("x", "y")
        assert "[/]c" in desk.said[0]


@pytest.mark.parametrize(
    "size", [(40, 10), (60, 15), (80, 24), (99, 30), (100, 24), (120, 35), (160, 50), (200, 24), (220, 35), (300, 100)]
)
async def test_every_size_is_drawn_whole(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press("b")
        lines = desk.seen.splitlines()
        assert [cell_len(line) for line in lines] == [size[0]] * size[1]
        assert "c03 2.31x" in lines[0] or size[0] < 50
        if size[0] < 60:
            assert "Enlarge the terminal" in desk.seen
        else:
            assert "import triton" in desk.seen
            assert lines[-1].startswith(" a accept")
            code = next(n for n, line in enumerate(lines) if "import triton" in line)
            heading = next(n for n, line in enumerate(lines) if "speedup" in line)
            assert (heading < code - 1) == (size[0] < 100)  # stacked: the list, then the code
            assert "q quit" in lines[-1]


async def test_a_terminal_that_changes_its_size_is_drawn_anew(opened: Opened) -> None:
    async with opened((160, 50)) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press("b")
        await desk.pilot.resize_terminal(80, 24)
        await desk.pilot.pause()
        assert "7/7 checks  2.31x" in desk.seen
        await desk.pilot.resize_terminal(160, 50)
        await desk.pilot.pause()
        assert "vs compile 1.67x" in desk.seen


@pytest.mark.parametrize("decided", [False, True])
def test_columns_fit_the_list(decided: bool) -> None:
    for width in range(38, 170):
        c = columns_for(width, decided=decided)
        assert 3 + c.id + c.state + c.checks + c.speedup + c.interval + c.decision + c.title <= width


async def test_long_ids_are_whole(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell([*recorded.opening(str(desk.reference)), *recorded.first_round()])
        for id in ("c10001", "a3f0-c12"):
            await desk.tell(recorded.judged(recorded.candidate(id, 1, "x"), recorded.accepted(1.5, 0.1)))
        assert "✓ c10001   accepted" in desk.seen
        assert "✓ a3f0-c12 accepted" in desk.seen
        assert [cell_len(line) for line in desk.seen.splitlines()] == [size[0]] * size[1]


@pytest.mark.parametrize(
    "theme",
    ["cudal1-dark", "cudal1-light", "cudal1-contrast", "cudal1-ember", "nord", "textual-light", "ansi-dark"],
)
async def test_every_theme_can_be_chosen_while_running(opened: Opened, theme: str) -> None:
    async with opened() as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        desk.app.theme = theme
        await desk.pilot.pause()
        assert "● c03" in desk.seen


async def test_a_theme_that_is_not_there_is_named(opened: Opened) -> None:
    async with opened(theme="mauve") as desk:
        assert desk.app.theme == "cudal1-dark"
        assert "'mauve'" in desk.said[0]


async def test_a_bad_theme_of_the_persons_own_is_named(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "config" / "cudal1-tui" / "themes"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text("colours = 3")
    async with opened() as desk:
        assert "mine.toml was left out" in desk.said[0]


async def test_a_theme_of_ones_own_is_taken_in_when_it_is_saved(opened: Opened, tmp_path: Path) -> None:
    from cudal1_themes import bundled_folder

    folder = tmp_path / "config" / "cudal1-tui" / "themes"
    folder.mkdir(parents=True)
    text = (bundled_folder() / "dark.toml").read_text().replace("cudal1-dark", "mine")
    (folder / "mine.toml").write_text(text)
    async with opened(theme="mine") as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        assert "#123456" not in desk.app.export_screenshot()
        (folder / "mine.toml").write_text(text.replace('background = "#0f131a"', 'background = "#123456"') + "# longer")
        os.utime(folder / "mine.toml", ns=(1, 1))
        desk.app._reload_themes()
        await desk.pilot.pause()
        assert desk.app.theme_variables["background"].lower() == "#123456"
        (folder / "mine.toml").write_text("colours = 3")
        desk.app._reload_themes()
        await desk.pilot.pause()
        assert "mine.toml was left out" in desk.said[-1]


async def test_a_wide_difference_stands_side_by_side_and_a_narrow_one_does_not(opened: Opened) -> None:
    async with opened((200, 50)) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press("b", "2")
        code = desk.app.workbench.query_one(CodeStream)
        assert code.text.startswith("--- reference")
        code.focus()
        await desk.press("z")
        sides = [line.split(" │ ") for line in code.text.splitlines()]
        assert sides[0][0].strip() == "reference"
        assert {len(line) for line in sides} == {2}
        left = "\n".join(line[0][2:].rstrip() for line in sides[1:])
        assert all(line.rstrip() in left for line in recorded.REFERENCE.splitlines())
        await desk.press("z")
        assert code.text.startswith("--- reference")


async def test_without_colour_every_state_still_has_its_word(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened() as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        for word in ("● c03 accepted", "✗ c05 wrong result", "! c07 dishonest", "▸ c08 timing"):
            assert word in desk.seen


async def test_leaving_the_enlarged_pane_by_choosing_a_view(opened: Opened) -> None:
    async with opened() as desk:
        await desk.press("z")
        assert desk.app.workbench.has_class(ZOOM)
        await desk.press("2")
        assert not desk.app.workbench.has_class(ZOOM)


def test_opening_the_workbench_imports_nothing_heavy() -> None:
    code = "import sys, cudal1_tui.app, cudal1_tui.screenshot; print(*sys.modules)"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    heavy = {"torch", "numpy", "transformers", "vllm", "trl", "openai", "sqlite3", "cudal1_core.rounds"}
    assert loaded & heavy == set()
    names = ("screens.help", "screens.questions", "clipboard", "pages", "plot", "report")
    asked_for = {f"cudal1_tui.{name}" for name in names}
    assert loaded & asked_for == set()


async def test_a_line_of_100_000_characters_is_streamed_shown_and_scrolled(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.opening(str(desk.reference)))
        long = "x = '日本" + "y" * 100_000 + "\x1b[2J[/] end'\n"
        for start in range(0, len(long), 20_000):
            await desk.tell([TokenArrived(candidate="c01", text=long[start : start + 20_000])])
        await desk.tell(recorded.judged(recorded.candidate("c01", 1, long, long), recorded.accepted(1.5, 0.1)))
        code = desk.app.workbench.query_one(CodeStream)
        for view in "1283":
            await desk.press(view)
            assert [cell_len(line) for line in desk.seen.splitlines()] == [size[0]] * size[1]
        await desk.press("1")
        assert "x = '日本yyyy" in desk.seen
        code.scroll_to(x=99_990, animate=False, immediate=True, force=True)
        await desk.pilot.pause()
        assert "[/] end'" in desk.seen
        assert [cell_len(line) for line in desk.seen.splitlines()] == [size[0]] * size[1]


async def test_ten_thousand_candidates_are_listed_and_scrolled(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell([*recorded.opening(str(desk.reference)), *recorded.first_round()])
        rows = Rows(replace(row, id=f"{n}-{row.id}") for n in range(2000) for row in desk.view.rows)
        desk.session.view = replace(desk.view, rows=rows, selected=rows[0].id, following=False)
        desk.app.workbench.draw()
        drawn: list[int] = []
        listed = desk.app.workbench.query_one(CandidateList)
        refresh = listed.refresh_lines
        listed.refresh_lines = lambda y, count=1: (drawn.append(y), refresh(y, count))[1]  # type: ignore[method-assign, return-value]
        for key, at in (("j", "0-c02"), ("G", "1999-c05"), ("k", "1999-c04"), ("g", "0-c01")):
            drawn.clear()
            await desk.press(key)
            assert desk.view.selected == at
            assert len(drawn) <= 2  # the line that was selected, and the one that is
        await desk.press("4")
        assert [cell_len(line) for line in desk.seen.splitlines()] == [size[0]] * size[1]
