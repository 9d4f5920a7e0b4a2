"""`cudal1-tui watch` with the real referee: a task event for each run, none for comments, and an orderly end."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import Any

import psutil

from tests.e2e.workshop import REFERENCE, Workshop
from tests.watch.editors import vim

WATCH = ("watch", "model.py", "--json", "--device", "cpu", "--policy", "replay", "--candidates", "endless.py")


def until(running: subprocess.Popen[str], **wanted: str) -> list[dict[str, Any]]:
    """Events up to one with these fields."""
    assert running.stdout is not None
    shown = []
    for line in running.stdout:
        shown.append(json.loads(line))
        if all(shown[-1].get(name) == value for name, value in wanted.items()):
            return shown
    raise AssertionError(f"it ended before: {running.communicate()}")


def test_each_save_that_means_something_is_one_task(workshop: Workshop) -> None:
    running = workshop.start(*WATCH)
    model = workshop.folder / "model.py"
    try:
        first = until(running, stage="checking")
        vim(model, "# only a comment\n" + REFERENCE)
        comment = until(running, event="reference_seen")
        vim(model, REFERENCE.replace("256", "128"))
        second = until(running, stage="checking")
    finally:
        children = psutil.Process(running.pid).children(recursive=True)
        running.send_signal(signal.SIGTERM)
    assert running.wait(60) == 143
    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []
    tasks = [[event for event in part if event["event"] == "task_described"] for part in (first, comment, second)]
    assert [len(part) for part in tasks] == [1, 0, 1]
    assert comment[-1]["state"] == "unchanged"
    assert tasks[2][0]["task"]["inputs"][0] == "float32[128]"
    assert [event["reason"] for event in second if event["event"] == "run_finished"] == ["stopped"]


def test_what_cannot_be_watched_is_told(workshop: Workshop) -> None:
    answer = workshop.run("watch", "missing.py", "--headless")
    assert answer.returncode == 2
    assert answer.stderr.startswith("missing.py: no such file or folder")
