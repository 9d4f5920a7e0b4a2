"""The workbench leaves when its terminal is gone or a signal asks for it, in whatever way it was started."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.terminal import PLAYER, ROOT, Pty, write_player
from tests.e2e.workshop import Workshop

HUNG_UP = 128 + signal.SIGHUP
LEAVES_S = 30.0  # on a machine that is busy with other tests; what is tested is whether it leaves at all
Open = Callable[..., Pty]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Starts a command in a pseudo-terminal, as `Pty.start` does."""
    made: list[Pty] = []

    def start(command: list[str], folder: Path, **how: bool) -> Pty:
        environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
        made.append(Pty.start(command, folder, environment, **how))
        return made[-1]

    yield start
    for each in made:
        each.close()


@pytest.fixture
def player(tmp_path: Path) -> list[str]:
    """The recorded run, amid its second round."""
    return [*write_player(tmp_path), "running"]


@pytest.mark.parametrize(("controlling", "deaf"), [(True, False), (True, True), (False, False)])
@pytest.mark.parametrize("question", [False, True], ids=["amid the run", "amid a question"])
def test_it_leaves_when_the_terminal_is_gone(
    opened: Open, player: list[str], tmp_path: Path, controlling: bool, deaf: bool, question: bool
) -> None:
    desk = opened(player, tmp_path, controlling=controlling, deaf=deaf)
    desk.wait_for(b"warp-level reduction")
    if question:
        os.write(desk.master, b"q")
        desk.wait_for(b"Quitting")
    desk.hang_up()
    assert desk.process.wait(LEAVES_S) == HUNG_UP


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_it_leaves_in_order_when_a_signal_asks_for_it(
    opened: Open, player: list[str], tmp_path: Path, number: signal.Signals
) -> None:
    desk = opened(player, tmp_path)
    desk.wait_for(b"accept")
    desk.process.send_signal(number)
    desk.wait_for(b"\x1b[?1049l")  # the terminal is given back
    assert desk.process.wait(LEAVES_S) == 128 + number


def test_it_does_not_wait_for_an_editor(
    opened: Open, player: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "editor.py").write_text("import time\nopen('editing', 'w')\ntime.sleep(3600)\n")
    monkeypatch.setenv("EDITOR", f"{sys.executable} editor.py")
    monkeypatch.delenv("VISUAL", raising=False)
    desk = opened(player, tmp_path, controlling=False)
    desk.wait_for(b"warp-level reduction")
    os.write(desk.master, b"o")
    until = time.monotonic() + 60
    while not (tmp_path / "editing").exists():
        assert time.monotonic() < until, "the editor was not started"
        time.sleep(0.05)
    (editor,) = psutil.Process(desk.process.pid).children()
    desk.hang_up()
    assert desk.process.wait(LEAVES_S) == HUNG_UP
    _, alive = psutil.wait_procs([editor], timeout=LEAVES_S)
    assert alive == []


def test_it_ends_itself_where_leaving_in_order_hangs(opened: Open, player: list[str], tmp_path: Path) -> None:
    stuck = "from cudal1_tui import hangup\nhangup.LEAVING_SECONDS = 1.0\n"
    stuck += "import time\nWorkbenchApp.exit = lambda *_, **__: time.sleep(3600)\n"
    (tmp_path / "player.py").write_text(PLAYER.replace("reference = Path", f"{stuck}reference = Path", 1))
    desk = opened(player, tmp_path, controlling=False)
    desk.wait_for(b"accept")
    desk.hang_up()
    assert desk.process.wait(LEAVES_S) == HUNG_UP


def test_a_run_and_its_children_end_with_the_terminal(opened: Open, workshop: Workshop) -> None:
    replayed = ["--device", "cpu", "--policy", "replay", "--candidates", "right.py", "--rounds", "1", "--group", "1"]
    desk = opened([sys.executable, "-m", "cudal1_tui", "model.py", *replayed], workshop.folder, controlling=False)
    desk.wait_for(b"decide c01", seconds=240)
    children = psutil.Process(desk.process.pid).children(recursive=True)
    assert len(children) > 1
    desk.hang_up()
    assert desk.process.wait(LEAVES_S) == HUNG_UP
    _, alive = psutil.wait_procs(children, timeout=LEAVES_S)
    assert alive == []
    kept = workshop.run("history")
    assert kept.returncode == 0, kept.stderr
    assert "model.py" in kept.stdout
