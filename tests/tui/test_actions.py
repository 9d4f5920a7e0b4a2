"""One table of actions: keys, help and docs cannot drift apart."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import cudal1_tui.app
from cudal1_tui.actions import ACTIONS, keys_table
from cudal1_tui.screens.help import page
from cudal1_tui.screens.workbench import WorkbenchScreen

DOCS = Path(__file__).parents[2] / "docs" / "workbench.md"


def test_no_key_and_no_id_is_used_twice() -> None:
    keys = Counter(key for action in ACTIONS for key in action.keys)
    ids = Counter(action.id for action in ACTIONS)
    assert {key: count for key, count in (keys + ids).items() if count > 2 or max(keys[key], ids[key]) > 1} == {}


def test_keys_that_terminals_and_multiplexers_take_are_left_alone() -> None:
    taken = {
        "ctrl+a",
        "ctrl+b",
        "ctrl+s",
        "ctrl+h",
        "ctrl+i",
        "ctrl+m",
        "ctrl+j",
        "ctrl+enter",
        "shift+enter",
    }
    assert not taken & {key for action in ACTIONS for key in action.keys}


def test_every_action_can_be_called() -> None:
    for action in ACTIONS:
        owner, _, name = action.call.partition("(")[0].rpartition(".")
        where = cudal1_tui.app.WorkbenchApp if owner == "app" else WorkbenchScreen
        assert hasattr(where, f"action_{name}"), action.id


def test_the_docs_hold_the_table() -> None:
    assert f"actions.py -->\n{keys_table()}\n<!-- end of keys -->" in DOCS.read_text(encoding="utf-8")


def test_the_help_holds_every_sentence() -> None:
    text = page().plain
    assert [action.id for action in ACTIONS if action.tooltip not in text] == []
