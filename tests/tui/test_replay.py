"""A recorded run is replayed from its file, event by event, and every step of it can be drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cudal1_core.events import DecisionMade, TokenArrived, from_json, to_json
from cudal1_core.recall import recall
from rich.cells import cell_len

from cudal1_tui.commands.export import read_view
from cudal1_tui.screens.workbench import WorkbenchScreen
from cudal1_tui.state import reduce
from cudal1_tui.view import View
from cudal1_tui.views import VIEWS
from tests.tui import recorded

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.tui.conftest import Opened

PATH = "/home/me/softmax.py"
KEPT = DecisionMade(at=recorded.START + 102, candidate="c03", decision="kept", path="/home/me/softmax_optimized.py")
RUN = [*recorded.middle(PATH), *recorded.rest(), KEPT]


async def test_every_step_is_drawn_and_the_end_is_that_of_the_file(
    opened: Opened, size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WorkbenchScreen, "_watch_machine", lambda self: None)  # of the machine the tests run on
    stored = tmp_path / "events.jsonl"
    stored.write_text("\n".join(map(to_json, RUN)), encoding="utf-8")
    async with opened(size) as desk:
        for number, line in enumerate(stored.read_text(encoding="utf-8").splitlines()):
            await desk.tell([from_json(line)])
            if number % 5 == 0:
                await desk.press(str(number // 5 % len(VIEWS) + 1))  # another view every few steps
            lines = desk.seen.splitlines()
            assert [cell_len(line) for line in lines] == [size[0]] * size[1]
        await desk.press("1", "b")
        assert "✓ done" in desk.seen
        assert "✓ c03 is in softmax_optimized.py" in desk.seen
        await desk.press("G")
        assert "✓ c10 accepted" in desk.seen
        told = read_view(stored)
        assert (desk.view.rows, desk.view.best, desk.view.history) == (told.rows, told.best, told.history)


def test_a_run_that_goes_on_shows_its_past_from_fewer_events(tmp_path: Path) -> None:
    stored = tmp_path / "events.jsonl"
    stored.write_text("\n".join(map(to_json, RUN)), encoding="utf-8")
    known = recall(stored).events
    assert not any(isinstance(event, TokenArrived) for event in known)
    shown = View()
    for event in known:
        shown = reduce(shown, event, 0.0)
    told = read_view(stored)
    assert [replace(row, since=None) for row in shown.rows] == [replace(row, since=None) for row in told.rows]
    assert (shown.best, shown.history, shown.round) == (told.best, told.history, told.round)
