"""What really reaches a terminal: 16 and 256 colours, none, and ASCII alone, by the bytes themselves."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.e2e.terminal import PLAYER, ROOT
from tests.tui import recorded

TRUECOLOUR, INDEXED = re.compile(rb"[34]8;2;(\d+);(\d+);(\d+)"), re.compile(rb"[34]8;5;(\d+)")
SEQUENCE = re.compile(rb"\x1b(\[[0-9;?<>=$]*[a-zA-Z]|\][^\x07]*\x07|P[^\x1b]*\x1b\\|[()][A-Z0-9]|[=>78])")


def painted(folder: Path, *words: str, **environment: str) -> bytes:
    """Everything that the workbench over the recorded run writes until its last line is drawn."""
    (folder / "softmax.py").write_text(recorded.REFERENCE)
    (folder / "player.py").write_text(PLAYER)
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLORTERM", "TMUX")}
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(folder)
        config = {"PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(folder / "config")}
        os.execve(sys.executable, [sys.executable, "player.py", *words], {**kept, **config, **environment})
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    seen, until = b"", time.monotonic() + 120
    try:
        while b"operation fusion" not in seen or b"decide" not in seen:
            assert time.monotonic() < until, f"it never drew the run: {seen[-2000:]!r}"
            if select.select([master], [], [], 1)[0]:
                seen += os.read(master, 65536)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(master)
    return seen


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
