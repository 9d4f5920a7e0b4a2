"""Real terminals for tests: tmux with a server of its own, keys sent and screens read as a person would; and a bare
pseudo-terminal, whose bytes are read and which can be hung up."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path

from tests.tui import recorded

TMUX = shutil.which("tmux")
ROOT = Path(__file__).parents[2]
PLAYER = """
import asyncio, sys
from pathlib import Path
from cudal1_core.config import Settings
from cudal1_tui.app import WorkbenchApp, main
from tests.tui import recorded

reference = Path("softmax.py")
run = recorded.ScriptedRun()
events = recorded.middle(str(reference.resolve()))
run.tell(events if "running" in sys.argv else [*events, *recorded.rest()])
sys.exit(main(WorkbenchApp(run, reference=reference, settings=Settings(ascii="ascii" in sys.argv))))
"""
BEFORE = """
import fcntl, os, signal, sys, termios
if sys.argv[1] == "1":
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
if sys.argv[2] == "1":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
os.execv(sys.argv[3], sys.argv[3:])
"""


def write_player(folder: Path) -> list[str]:
    """The recorded run's reference and its player; the command that plays it in this folder."""
    (folder / "softmax.py").write_text(recorded.REFERENCE)
    (folder / "player.py").write_text(PLAYER)
    return [sys.executable, "player.py"]


@dataclass
class Pty:
    """A program in a pseudo-terminal of 80x24."""

    master: int
    process: subprocess.Popen[bytes]

    @classmethod
    def start(
        cls,
        command: list[str],
        folder: Path,
        environment: dict[str, str],
        *,
        controlling: bool = True,
        deaf: bool = False,
    ) -> Pty:
        """The terminal is its controlling one, or not; a `deaf` program ignores SIGHUP."""
        master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (24, 80))
        process = subprocess.Popen(
            [sys.executable, "-c", BEFORE, str(int(controlling)), str(int(deaf)), *command],
            stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=environment, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        return cls(master, process)

    def wait_for(self, *words: bytes, seconds: float = 120.0) -> bytes:
        """What came since the last time, once it holds all of the words."""
        seen = b""
        until = time.monotonic() + seconds
        while not all(word in seen for word in words):
            assert time.monotonic() < until, f"never saw {words!r}: {seen[-2000:]!r}"
            if select.select([self.master], [], [], 0.1)[0]:
                seen += os.read(self.master, 1 << 16)
        return seen

    def hang_up(self) -> None:
        os.close(self.master)
        self.master = -1

    def close(self) -> None:
        if self.master >= 0:
            self.hang_up()
        self.process.kill()
        self.process.wait()


class Terminal:
    """One window of tmux with a shell in it."""

    def __init__(self, folder: Path, size: tuple[int, int], **environment: str) -> None:
        self.folder = folder
        self._socket = folder / "tmux"
        kept = {name: value for name, value in os.environ.items() if name not in ("TMUX", "NO_COLOR", "COLORTERM")}
        self._environment = {**kept, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(folder / "config"), **environment}
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), "sh")
        self.type("PS1='ready> '")
        self.wait_for("ready>")

    def type(self, line: str) -> None:
        self._tmux("send-keys", "-l", line)
        self._tmux("send-keys", "Enter")

    def press(self, *keys: str) -> None:
        """Keys by tmux's names, such as `b`, `Escape`, `C-z`."""
        self._tmux("send-keys", *keys)

    def wait_for(self, pattern: str, *, seconds: float = 120.0) -> str:
        """The screen once it holds the pattern."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            screen = self.screen
            if re.search(pattern, screen):
                return screen
            time.sleep(0.1)
        raise AssertionError(f"never saw {pattern!r}; the terminal shows:\n{self.screen}")

    def wait_for_title(self, pattern: str, *, seconds: float = 60.0) -> str:
        until = time.monotonic() + seconds
        while not re.search(pattern, title := self.ask("display", "-p", "#{pane_title}").strip()):
            assert time.monotonic() < until, f"the title is {title!r}, never {pattern!r}"
            time.sleep(0.1)
        return title

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    @property
    def screen(self) -> str:
        return self.ask("capture-pane", "-p")

    def ask(self, *words: str) -> str:
        return self._tmux(*words)

    def close(self) -> None:
        subprocess.run([TMUX or "tmux", "-S", self._socket, "kill-server"], capture_output=True, check=False)

    def play(self, *words: str) -> None:
        """Opens the workbench over the recorded run in this folder."""
        self.type(f"{sys.executable} player.py {' '.join(words)}")

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            [TMUX or "tmux", "-S", self._socket, *words],
            cwd=self.folder, env=self._environment, capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        return done.stdout
