"""Headless runs with the real referee and recorded candidates."""

from __future__ import annotations

import json
import sqlite3

from cudal1_core.events import from_json

from tests.e2e.workshop import RIGHT, WRONG, Workshop

REPLAY = ("--device", "cpu", "--policy", "replay", "--candidates")


def test_the_best_is_found_stored_and_written(workshop: Workshop) -> None:
    workshop.write("found/c1.py", WRONG)
    workshop.write("found/c2.py", RIGHT)
    ended = workshop.run("model.py", *REPLAY, "found", "--group", "1", "--out", "fast.py")
    assert ended.returncode == 0, ended.stderr
    assert "headless" in ended.stderr
    assert "c01 wrong result" in ended.stderr
    rows = [line.split()[:2] for line in ended.stdout.splitlines()]
    assert rows[1:3] == [["c02", "accepted"], ["c01", "wrong"]]
    assert "written to fast.py" in ended.stdout
    written = (workshop.folder / "fast.py").read_text()
    assert written.startswith("# ")
    assert RIGHT.strip() in written
    assert (workshop.folder / ".cudal1" / ".gitignore").read_text() == "*\n"
    archive = sqlite3.connect(workshop.folder / ".cudal1" / "archive.db")
    verdicts = archive.execute("SELECT candidate, verdict, category FROM verdicts ORDER BY candidate")
    assert verdicts.fetchall() == [("c01", "rejected", "wrong_result"), ("c02", "accepted", None)]
    decisions = archive.execute("SELECT candidate, decision FROM decisions")
    assert decisions.fetchall() == [("c02", "kept")]


def test_json_is_the_stored_stream_and_nothing_else(workshop: Workshop) -> None:
    ended = workshop.run("model.py", *REPLAY, "wrong.py", "--json")
    assert ended.returncode == 1, ended.stderr
    shown = [json.loads(line) for line in ended.stdout.splitlines()]
    assert shown == workshop.stored()
    assert [from_json(line).name for line in ended.stdout.splitlines()] == [event["event"] for event in shown]
    names = [event["event"] for event in shown]
    assert names[:4] == ["run_started", "task_described", "baseline_timed", "round_started"]
    assert names[-1] == "run_finished"
    (verdict,) = [event["verdict"] for event in shown if event["event"] == "verdict_reached"]
    assert (verdict["verdict"], verdict["category"]) == ("rejected", "wrong_result")


def test_a_reference_that_fails_when_it_runs_has_status_2(workshop: Workshop) -> None:
    workshop.write("model.py", "import torch\nraise RuntimeError('no such data set')\n")
    ended = workshop.run("model.py", *REPLAY, "right.py", "--headless")
    assert ended.returncode == 2
    assert "no such data set" in ended.stderr
    assert ended.stdout == ""
