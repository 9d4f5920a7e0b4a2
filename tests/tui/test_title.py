"""The terminal's title says where a run stands and whether it waits for the person; the bell calls them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from cudal1_core.config import Settings
from cudal1_core.events import RunFinished, TroubleMet

from cudal1_tui.rows import Rows
from cudal1_tui.state import reduce
from cudal1_tui.title import TerminalTitle, title
from cudal1_tui.view import View
from tests.tui import recorded

if TYPE_CHECKING:
    from tests.tui.conftest import Opened

PATH = "/home/me/softmax.py"


def test_it_follows_the_run_and_asks_at_its_end() -> None:
    view, seen = View(), []
    for event in [*recorded.middle(PATH), *recorded.rest()]:
        view = reduce(view, event, 0.0)
        if title(view) not in seen:
            seen.append(title(view))
    assert seen[0] == "softmax.py · starting"
    assert "softmax.py · round 1/3" in seen
    assert "softmax.py · round 2/3 · best 2.31x" in seen
    assert seen[-1] == "! decide c03 2.31x · softmax.py"
    kept = Rows(replace(row, decision="kept") if row.id == "c03" else row for row in view.rows)
    assert title(replace(view, rows=kept)) == "done · softmax.py"
    trouble = TroubleMet(title="The disk is full\x07\x1b]2;x")
    assert title(reduce(view, trouble, 0.0)).startswith("! The disk is full")
    assert "\x1b" not in title(reduce(view, trouble, 0.0))


def test_it_is_written_when_it_changes_and_the_old_one_comes_back() -> None:
    written: list[str] = []
    shown = TerminalTitle(written.append)
    shown.end()
    assert written == []
    for text in ("one", "one", "two"):
        shown.show(text)
    shown.show_again()
    shown.end()
    assert written == ["\x1b[22;2t", "\x1b]2;one\x07", "\x1b]2;two\x07", "\x1b]2;two\x07", "\x1b[23;2t"]


async def test_the_workbench_titles_its_terminal(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    async with opened() as desk:
        monkeypatch.setattr(desk.app._driver, "write", written.append)
        await desk.tell([*recorded.middle(str(desk.reference)), *recorded.rest()])
        assert "\x1b]2;! decide c03 2.31x · softmax.py\x07" in written


@pytest.mark.parametrize("bell", [True, False])
async def test_the_bell_rings_at_the_end_and_at_trouble_unless_it_is_off(
    opened: Opened, bell: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(settings=Settings(bell=bell)) as desk:
        rung: list[str] = []
        monkeypatch.setattr(desk.app, "bell", lambda: rung.append(desk.view.ending or "trouble"))
        await desk.tell(recorded.middle(str(desk.reference)))
        assert rung == []
        await desk.tell([TroubleMet(title="The disk is full")])
        await desk.tell([RunFinished(reason="failed", best=None, best_speedup=None)])
        assert rung == (["trouble", "failed"] if bell else [])
