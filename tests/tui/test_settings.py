"""What a settings file changes on the workbench."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cudal1_core.config import Settings
from rich.cells import cell_len

from cudal1_tui.actions import ACTIONS, rebound
from cudal1_tui.ascii import to_ascii
from cudal1_tui.cli import main
from tests.tui import recorded

if TYPE_CHECKING:
    from pathlib import Path

    from tests.tui.conftest import Opened

Size = tuple[int, int]


async def test_a_key_of_ones_own_does_it_and_is_the_one_shown(opened: Opened) -> None:
    async with opened(settings=Settings(keys={"reject": "ctrl+t"})) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.select("c05")
        await desk.press("x")
        assert desk.run.asked == []
        await desk.press("ctrl+t")
        assert desk.run.asked == [("c05", "dismissed", None)]
        assert "ctrl+t reject" in desk.seen.splitlines()[-1]
        await desk.press("question_mark")
        assert "ctrl+t    Dismiss" in desk.seen


def test_a_key_that_belongs_to_another_action_is_refused() -> None:
    actions, problems = rebound({"accept": "x", "reject": "ctrl+t"})
    assert problems == []  # reject gave x away
    assert {action.id: action.keys for action in actions}["accept"] == ("x",)
    actions, problems = rebound({"accept": "q"})
    assert actions == ACTIONS
    assert problems == ["keys.accept: 'q' is the key of quit; accept keeps its own"]


def test_keys_prints_ones_own_and_names_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cudal1.toml").write_text('[keys]\naccept = "ctrl+t"\nrejct = "r"\n')
    assert main(["keys"]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[0].split()[:2] == ["ctrl+t", "accept"]
    assert "rejct: no such action; did you mean reject?" in told.err


async def test_ascii_leaves_no_other_character_and_keeps_every_column(opened: Opened, size: Size) -> None:
    async with opened(size, settings=Settings(ascii=True)) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        for view in "134":
            await desk.press(view)
            lines = desk.seen.splitlines()
            assert desk.seen.isascii()
            assert [cell_len(line) for line in lines] == [size[0]] * size[1]


@pytest.mark.parametrize("text", ["plain", "● c03 ✓ 2.31x [2.28–2.34]", "幅広 テ", "▁▂▃▄▅▆▇█"])
def test_ascii_takes_as_many_cells(text: str) -> None:
    assert to_ascii(text).isascii()
    assert len(to_ascii(text)) == cell_len(text)


async def test_what_is_wrong_in_a_file_is_told_on_the_screen(opened: Opened) -> None:
    async with opened(notices=["config.toml: theem: no such setting; did you mean theme?"]) as desk:
        assert "theem" in desk.said[0]
