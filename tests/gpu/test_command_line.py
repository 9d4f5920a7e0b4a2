"""The command line on a CUDA device."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.workshop import REFERENCE, RIGHT, Workshop


def test_doctor_names_the_device(tmp_path: Path) -> None:
    ended = Workshop(tmp_path).run("doctor", "--json")
    assert ended.returncode == 0, ended.stderr
    states = {finding["topic"]: finding["state"] for finding in json.loads(ended.stdout)["findings"]}
    assert (states["CUDA"], states["GPU"]) == ("works", "works")


def test_a_run_chooses_the_device_by_itself(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    shop.write("model.py", REFERENCE)
    shop.write("right.py", RIGHT)
    ended = shop.run("model.py", "--json", "--policy", "replay", "--candidates", "right.py")
    assert ended.returncode == 0, ended.stderr
    events = [json.loads(line) for line in ended.stdout.splitlines()]
    (task,) = [event["task"] for event in events if event["event"] == "task_described"]
    assert task["device"].startswith("cuda")
