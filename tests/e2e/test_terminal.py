"""The workbench in a real terminal: tmux, a shell, and keys."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.terminal import TMUX, Terminal, write_player
from tests.e2e.workshop import Workshop
from tests.tui import recorded

pytestmark = pytest.mark.skipif(TMUX is None, reason="tmux is not installed (Debian and Ubuntu: apt install tmux)")
PROMPT = r"ready>\s*\Z"
Size = tuple[int, int]
Open = Callable[..., Terminal]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Open]:
    """Opens a terminal in the test's folder, which holds the recorded run's reference and its player."""
    write_player(tmp_path)
    opened: list[Terminal] = []

    def open_terminal(size: Size = (80, 24), **environment: str) -> Terminal:
        opened.append(Terminal(tmp_path, size, **environment))
        return opened[-1]

    yield open_terminal
    for each in opened:
        each.close()


@pytest.fixture(params=[(80, 24), (160, 50)], ids=["80x24", "160x50"])
def size(request: pytest.FixtureRequest) -> Size:
    value: Size = request.param
    return value


def whole(screen: str, size: Size) -> bool:
    """First, second and last line are there."""
    lines = screen.splitlines()
    return (
        len(lines) == size[1]
        and lines[0].startswith(" cudal1-tui")
        and "decide" in lines[1]
        and lines[-1].startswith(" a accept")
    )


def test_a_real_run_is_judged_accepted_taken_back_and_left(workshop: Workshop, terminal: Open) -> None:
    shop, desk = workshop, terminal()
    desk.type("printf '\\033]2;my shell\\007'")
    replayed = "--policy replay --candidates right.py --rounds 1 --group 1"
    desk.type(f"{sys.executable} -m cudal1_tui model.py --device cpu {replayed}")
    desk.wait_for("done: 1 of 1 accepted", seconds=240)
    desk.wait_for_title(r"^! decide c01 .*x · model\.py$")
    written = shop.folder / "model_optimized.py"
    desk.press("b", "a")
    desk.wait_for("c01 is in model_optimized.py")
    assert "cudal1-tui verify" in written.read_text()
    desk.press("u")
    desk.wait_for("decide ● c01")
    assert not written.exists()
    desk.press("3")
    desk.wait_for("✓ timed outputs")
    children = psutil.Process(int(desk.ask("display", "-p", "#{pane_pid}"))).children(recursive=True)
    assert len(children) > 1
    desk.press("q")
    desk.wait_for(PROMPT)
    assert "cudal1-tui   " not in desk.screen  # the shell's own screen is back
    desk.wait_for_title("^my shell$")
    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []
    (events,) = (shop.folder / ".cudal1" / "runs").glob("*/events.jsonl")
    picture = f"{sys.executable} -m cudal1_tui.screenshot out.svg --events {events} --size 80x24 && echo drawn"
    desk.type(picture)
    desk.wait_for(r"\ndrawn")
    assert "c01" in (shop.folder / "out.svg").read_text()


def test_a_screen_comes_back_whole_from_the_shell(terminal: Open, size: Size) -> None:
    desk = terminal(size)
    desk.play()
    desk.wait_for("decide ● c03")
    desk.press("C-z")
    desk.wait_for(PROMPT)
    desk.type("fg")
    desk.wait_for("decide ● c03")
    desk.wait_for(r" a accept .* q quit")
    assert whole(desk.screen, size), desk.screen


def test_a_screen_comes_back_whole_from_the_editor(terminal: Open, size: Size) -> None:
    desk = terminal(size, EDITOR=f"{sys.executable} editor.py", VISUAL="")
    (desk.folder / "editor.py").write_text(
        "import sys\nprint('editing')\nopen(sys.argv[1], 'a').write('# mine\\n')\ninput()\n"
    )
    desk.play()
    desk.wait_for("decide ● c03")
    desk.press("b", "o")
    desk.wait_for("editing")
    desk.press("Enter")
    screen = desk.wait_for("Saved. Judge it")
    assert whole(screen, size), screen


def test_a_resize_keeps_the_place(terminal: Open) -> None:
    desk = terminal((80, 24), COLUMNS="80", LINES="24")  # as readline leaves them to what a shell starts
    desk.play()
    desk.wait_for("decide ● c03")
    desk.press("g", "j")
    desk.wait_for(r"▎✓ c02")
    for size, sign in (
        ((160, 50), "ran as torch level"),
        ((240, 60), "r1"),
        ((59, 14), "Enlarge"),
        ((80, 24), "▎✓ c02"),
    ):
        desk.resize(*size)
        screen = desk.wait_for(sign)
        assert len(screen.splitlines()) == size[1]
    desk.wait_for(" a accept  x reject", seconds=20)
    assert whole(desk.screen, (80, 24)), desk.screen


def test_copying_reaches_the_buffer_of_tmux(terminal: Open) -> None:
    desk = terminal()
    desk.play()
    desk.wait_for("decide ● c03")
    desk.press("b", "y")
    desk.wait_for("Copied to the tmux buffer")
    assert desk.ask("show-buffer") == recorded.FAST


def test_quitting_while_work_is_running_asks(terminal: Open) -> None:
    desk = terminal()
    desk.play("running")
    desk.wait_for("timing c08")
    desk.press("q")
    desk.wait_for("Work is running")
    desk.press("s")
    desk.wait_for("timing c08")
    desk.press("q")
    desk.wait_for("Work is running")
    desk.press("q")
    desk.wait_for(PROMPT)


def test_text_of_a_model_reaches_no_terminal_as_a_command(terminal: Open, size: Size) -> None:
    desk = terminal(size)
    desk.play()
    desk.wait_for("decide ● c03")
    for key in ("1", "2", "3", "7", "8", "9"):
        desk.press("g", *"jjjjjj", key)
        desk.wait_for(r"▎! c07")
        assert whole(desk.screen, size), desk.screen
    assert "title" not in desk.ask("display", "-p", "#{pane_title}")
