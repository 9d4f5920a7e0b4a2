"""Help begins with the pane that has the focus, and names no action twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest
from textual.widgets import Static

from cudal1_tui.actions import ACTIONS, IDS
from cudal1_tui.screens.help import page
from cudal1_tui.screens.pane_help import ABOUT
from cudal1_tui.screens.workbench import PaneView
from tests.tui import recorded

if TYPE_CHECKING:
    from tests.tui.conftest import Opened


def test_every_pane_and_every_view_has_its_help() -> None:
    assert set(get_args(PaneView)) | {"candidates", "reference", "correctness", "speed", "plot"} == ABOUT.keys()
    assert all(set(about.actions) <= set(IDS) for about in ABOUT.values())


@pytest.mark.parametrize("about", ["", *ABOUT])
def test_every_action_is_named_once(about: str) -> None:
    text = page(ACTIONS, about).plain
    assert [text.count(action.tooltip) for action in ACTIONS] == [1] * len(ACTIONS)


@pytest.mark.parametrize(
    ("keys", "about"), [((), "candidates"), (("3",), "candidates"), (("tab", "4"), "code"), (("tab",), "plot")]
)
async def test_it_is_about_the_pane_in_focus(opened: Opened, keys: tuple[str, ...], about: str) -> None:
    async with opened() as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        pane = desk.app.workbench.query_one(f"#{about}")
        pane.focus()
        await desk.press(*(key for key in keys if key != "tab"), "question_mark")
        shown = str(desk.app.screen.query_one(Static).content)
        expected = "progress" if about == "code" else about
        assert shown.startswith(f"{expected.capitalize()}\n{ABOUT[expected].text[:40]}")
