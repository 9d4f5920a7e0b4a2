"""What really reaches a terminal: 16 and 256 colours, none, and ASCII alone, by the bytes themselves."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.e2e.terminal import ROOT, Pty, write_player

TRUECOLOUR, INDEXED = re.compile(rb"[34]8;2;(\d+);(\d+);(\d+)"), re.compile(rb"[34]8;5;(\d+)")
SEQUENCE = re.compile(rb"\x1b(\[[0-9;?<>=$]*[a-zA-Z]|\][^\x07]*\x07|P[^\x1b]*\x1b\\|[()][A-Z0-9]|[=>78])")


def painted(folder: Path, *words: str, **environment: str) -> bytes:
    """Everything that the workbench over the recorded run writes until its last line is drawn."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLORTERM", "TMUX")}
    config = {"PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(folder / "config")}
    desk = Pty.start([*write_player(folder), *words], folder, {**kept, **config, **environment})
    try:
        return desk.wait_for(b"operation fusion", b"decide")
    finally:
        desk.close()


def test_a_terminal_of_16_colours_gets_no_others(tmp_path: Path) -> None:
    seen = painted(tmp_path, TERM="xterm")
    assert not TRUECOLOUR.search(seen)
    assert not INDEXED.search(seen)
    assert re.search(rb"\x1b\[[0-9;]*3[0-7]", seen)


def test_a_terminal_of_256_colours_gets_no_others(tmp_path: Path) -> None:
    seen = painted(tmp_path, TERM="xterm-256color")
    assert not TRUECOLOUR.search(seen)
    assert INDEXED.search(seen)


def test_no_color_leaves_greys_alone(tmp_path: Path) -> None:
    seen = painted(tmp_path, TERM="xterm-256color", COLORTERM="truecolor", NO_COLOR="1")
    found = TRUECOLOUR.findall(seen)
    assert all(red == green == blue for red, green, blue in found)
    assert "● ".encode() in seen  # what is best is told by its glyph


@pytest.mark.parametrize("term", ["xterm", "xterm-256color"])
def test_ascii_draws_with_ascii_alone(tmp_path: Path, term: str) -> None:
    text = SEQUENCE.sub(b"", painted(tmp_path, "ascii", TERM=term))
    assert [byte for byte in text if byte > 126] == []
    assert b"* c03" in text
