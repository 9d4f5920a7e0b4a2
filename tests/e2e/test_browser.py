"""The workbench in a browser: headless Chromium opens what `cudal1-tui serve` serves, sees it and presses keys."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.workshop import Workshop
from tests.tui.test_serve import free_port

pytest.importorskip("textual_serve", reason="pip install 'cudal1-tui[serve]'")
playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (Debian and Ubuntu: apt install chromium)")


@pytest.fixture
def address(workshop: Workshop) -> Iterator[str]:
    """Of a workbench that replays a candidate which keeps the referee busy."""
    port = free_port()
    replayed = ("--device", "cpu", "--policy", "replay", "--candidates", "endless.py")
    environment = {**os.environ, "XDG_CONFIG_HOME": str(workshop.folder / "config"), "PYTHONUNBUFFERED": "1"}
    server = subprocess.Popen(
        [sys.executable, "-m", "cudal1_tui", "serve", "--port", str(port), "model.py", *replayed],
        cwd=workshop.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        told = ""
        while "Press Ctrl+C" not in told:
            line = server.stdout.readline()
            assert line, told
            told += line
        yield f"http://127.0.0.1:{port}/?fontsize=12"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=60)


class Received:
    """What the page was sent, as text."""

    def __init__(self, page: Any) -> None:
        self.text = ""
        self._page = page
        page.on("websocket", lambda socket: socket.on("framereceived", self._add))

    def wait_for(self, sign: str, *, seconds: int = 120) -> None:
        for _ in range(seconds * 10):
            if sign in self.text:
                return
            self._page.wait_for_timeout(100)
        raise AssertionError(f"never received {sign!r}; the end of what came: {self.text[-1500:]!r}")

    def _add(self, frame: str | bytes) -> None:
        self.text += frame if isinstance(frame, str) else frame.decode("utf-8", "replace")


def test_a_visitor_sees_the_workbench_and_its_keys_work(address: str, tmp_path: Path) -> None:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        received = Received(page)
        page.goto(address)
        received.wait_for("candidates")
        received.wait_for("class Model")
        page.mouse.click(700, 600)  # the page's terminal takes keys from here on
        page.wait_for_timeout(500)
        before = page.screenshot(path=tmp_path / "workbench.png")
        page.keyboard.press("?")
        received.wait_for("j k scroll")
        page.wait_for_timeout(500)
        assert page.screenshot(path=tmp_path / "help.png") != before
        browser.close()
