"""The workbench in a browser: only on the loopback address, and really drawn."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from cudal1_tui.cli import main

pytest.importorskip("textual_serve", reason="pip install 'cudal1-tui[serve]'")
EXAMPLE = Path(__file__).parents[2] / "examples" / "diag_matmul.py"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_port_that_is_taken_and_a_file_that_is_not_there_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["serve", "--port", str(taken.getsockname()[1]), str(EXAMPLE)]) == 2
    assert "cannot be used" in capsys.readouterr().err
    assert main(["serve", "no_such_file.py"]) == 2


def test_it_listens_on_loopback_alone_warns_and_draws(tmp_path: Path) -> None:
    port = free_port()
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    server = subprocess.Popen(
        [sys.executable, "-m", "cudal1_tui", "serve", "--port", str(port), str(EXAMPLE)],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        told = ""
        while "Press Ctrl+C" not in told:
            line = server.stdout.readline()
            assert line, told
            told += line
        assert "executes code as you" in told
        page = httpx.get(f"http://127.0.0.1:{port}/").text
        assert re.search(rf"ws://127\.0\.0\.1:{port}/ws", page)
        with open("/proc/net/tcp", encoding="ascii") as table:  # noqa: PTH123
            listening = [row.split()[1] for row in table if row.split()[3] == "0A"]
        assert [address for address in listening if address.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=60)
