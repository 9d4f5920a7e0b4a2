"""A recorded run becomes a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cudal1_core.events import to_json

from cudal1_tui import screenshot
from tests.tui import recorded

if TYPE_CHECKING:
    from pathlib import Path


def drawn(folder: Path, *arguments: str) -> str:
    events = folder / "events.jsonl"
    events.write_text("\n".join(map(to_json, recorded.middle("/home/me/softmax.py"))), encoding="utf-8")
    out = folder / "out.svg"
    assert screenshot.main([str(out), "--events", str(events), *arguments]) == 0
    return out.read_text(encoding="utf-8").replace("&#160;", " ")


def test_the_best_candidate_is_shown(tmp_path: Path) -> None:
    svg = drawn(tmp_path, "--size", "160x50")
    assert svg.startswith("<svg")
    assert "softmax_kernel" in svg
    assert "2.31x" in svg
    assert drawn(tmp_path, "--size", "160x50") == svg


def test_a_candidate_and_keys_can_be_chosen(tmp_path: Path) -> None:
    svg = drawn(tmp_path, "--size", "80x24", "--select", "c05", "--keys", "3")
    assert "Differs from the float64 truth" in svg


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text('{"event": "none"}')
    with pytest.raises(ValueError, match="not an event"):
        screenshot.read_events(path)
