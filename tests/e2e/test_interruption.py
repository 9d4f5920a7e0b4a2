"""However a run ends, no process is left behind and nothing that was shown is lost."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
from typing import Any

import psutil
import pytest

from tests.e2e.workshop import Workshop

ENDLESS = ("model.py", "--json", "--device", "cpu", "--policy", "replay", "--candidates", "endless.py")


def until_checking(running: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """Events up to the stage in which the endless candidate runs."""
    assert running.stdout is not None
    shown = []
    for line in running.stdout:
        shown.append(json.loads(line))
        if shown[-1].get("stage") == "checking":
            return shown
    raise AssertionError(f"it ended before: {running.communicate()}")


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_interrupted(workshop: Workshop, number: signal.Signals, status: int) -> None:
    running = workshop.start(*ENDLESS)
    shown = until_checking(running)
    children = psutil.Process(running.pid).children(recursive=True)
    assert children
    running.send_signal(number)
    assert running.stdout is not None
    assert running.stderr is not None
    rest, errors = running.stdout.read(), running.stderr.read()
    assert running.wait(60) == status, errors
    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []
    shown += [json.loads(line) for line in rest.splitlines()]
    assert workshop.stored()[: len(shown)] == shown
    if number != signal.SIGKILL:
        assert (shown[-1]["event"], shown[-1]["reason"]) == ("run_finished", "stopped")
    archive = sqlite3.connect(workshop.folder / ".cudal1" / "archive.db")
    assert archive.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert archive.execute("SELECT id FROM candidates").fetchall() == [("c01",)]
