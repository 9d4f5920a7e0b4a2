"""Small suites, judged by the real referee on the CPU: one bad task costs one row, and a killed bench goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest
from cudal1_core.archive import Archive
from cudal1_core.baselines import others
from cudal1_core.bench.judging import JudgingWorker, Work
from cudal1_core.bench.results import read_results
from cudal1_core.bench.row import Row
from cudal1_core.bench.suites import Source, Subject
from cudal1_core.events import Event, StageStarted
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions

from tests.e2e.workshop import REFERENCE, RIGHT, WRONG, Workshop

QUICK = ("--device", "cpu", "--timing", "0.3")
FAST = JudgeOptions(device="cpu", timing_budget_s=0.3)


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def rows_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class Deaf:
    """Listens to nothing."""

    def began(self, lane: int, subject: Subject, candidate: str) -> None: ...

    def happened(self, lane: int, event: Event) -> None: ...

    def idle(self, lane: int) -> None: ...


class Killer(Deaf):
    """Kills every process of the referee whenever the named candidate has begun to be checked."""

    def __init__(self, victim: str) -> None:
        self.victim = victim
        self.current = ""
        self.kills = 0

    def began(self, lane: int, subject: Subject, candidate: str) -> None:
        self.current = candidate

    def happened(self, lane: int, event: Event) -> None:
        if self.current == self.victim and isinstance(event, StageStarted) and event.stage == "checking":
            self.kills += 1
            for child in psutil.Process().children(recursive=True):
                child.kill()


def test_a_suite_with_every_kind_of_trouble_gives_a_row_for_each_candidate(shop: Workshop) -> None:
    shop.write("suite/a_right.py", REFERENCE)
    shop.write("suite/a_right/good.py", RIGHT)
    shop.write("suite/a_right/wrong.py", WRONG)
    shop.write("suite/b_broken.py", "import nothing_of_this_name\n" + REFERENCE)
    shop.write("suite/b_broken_optimized.py", RIGHT)
    shop.write("suite/c_empty.py", REFERENCE)
    shop.write("suite/c_empty_optimized.py", "")
    answer = shop.run("bench", "suite", *QUICK, "--out", "out/r.jsonl")
    assert answer.returncode == 0, answer.stderr
    rows = {(row["task"], row["candidate"]): row for row in rows_in(shop.folder / "out" / "r.jsonl")}
    verdicts = {key: (row["verdict"]["verdict"], row["verdict"]["category"]) for key, row in rows.items()}
    assert verdicts == {
        ("a_right", "good"): ("accepted", None),
        ("a_right", "wrong"): ("rejected", "wrong_result"),
        ("b_broken", "b_broken_optimized"): ("unjudgeable", "bad_reference"),
        ("c_empty", "c_empty_optimized"): ("rejected", "no_code"),
    }
    low, high = rows["a_right", "good"]["verdict"]["speedup_interval"]
    assert 0 < low <= high
    assert {path.suffix for path in (shop.folder / "out").iterdir()} == {".jsonl", ".md", ".html", ".json", ".csv"}
    assert "1 (50 %)" in answer.stdout  # of the two tasks that could be judged
    assert "| a\\_right wrong | wrong result |" in (shop.folder / "out" / "r.md").read_text()

    again = shop.run("bench", "suite", *QUICK, "--out", "out/r.jsonl")
    assert again.returncode == 0
    assert "4 of 4 have a row" in again.stderr
    assert len(rows_in(shop.folder / "out" / "r.jsonl")) == 4


def test_a_killed_bench_goes_on_where_it_was(shop: Workshop) -> None:
    lines = [
        {"level_id": 1, "task_id": number, "ref_code": REFERENCE + f"# {number}\n", "custom_code": code}
        for number, code in ((1, RIGHT), (2, WRONG))
    ]
    shop.write("suite.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    words = ("bench", "suite.jsonl", *QUICK, "--out", "r.jsonl")
    process = shop.start(*words)
    assert process.stderr is not None
    seen = next(line for line in process.stderr if "L1/1" in line)  # the row is written before it is told
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate()
    assert "accepted" in seen
    path = shop.folder / "r.jsonl"
    (first, *_) = rows_in(path)
    with path.open("ab") as file:
        file.write(b'{"format": 1, "task": "L1/2", "verd')  # as a kill in the middle of a write leaves it
    psutil.wait_procs(children, timeout=30)
    assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)

    answer = shop.run(*words)
    assert answer.returncode == 0, answer.stderr
    assert "1 of 2 have a row" in answer.stderr
    rows = rows_in(path)
    assert rows[0] == first
    assert sorted((row["task"], row["verdict"]["verdict"]) for row in rows) == [
        ("L1/1", "accepted"),
        ("L1/2", "rejected"),
    ]


def test_a_referee_that_dies_costs_one_row(tmp_path: Path) -> None:
    listener = Killer("victim")
    rows: list[Row] = []
    sources = (Source("victim", RIGHT), Source("next", RIGHT))

    async def judge() -> None:
        worker = JudgingWorker(FAST, tmp_path, listener)
        try:
            await worker.do(Work(Subject("L1/1", REFERENCE), sources), 0, rows.extend, lambda: True)
        finally:
            await worker.close()

    asyncio.run(judge())
    assert listener.kills == 2  # once more, in a fresh referee
    assert [(row.candidate, row.verdict.verdict, bool(row.failed)) for row in rows] == [
        ("victim", "unjudgeable", True),
        ("next", "accepted", False),
    ]


@pytest.mark.skipif(not others("cpu"), reason="there is no C++ compiler, which torch.compile needs")
def test_rows_carry_the_baselines_that_the_archive_knows(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(REFERENCE)
    rows: list[Row] = []
    archive = Archive(tmp_path / "archive.db")

    async def judge() -> None:
        async with Referee(FAST) as referee:
            await referee.open(path)
            archive.keep_baseline(referee.baseline_key(), "compile", 4.0)
        worker = JudgingWorker(FAST, tmp_path, Deaf(), baselines="known", archive=archive)
        try:
            await worker.do(Work(Subject("L1/1", REFERENCE), (Source("x", RIGHT),)), 0, rows.extend, lambda: True)
        finally:
            await worker.close()

    asyncio.run(judge())
    (row,) = rows
    assert row.verdict.accepted
    assert row.verdict.baselines["compile"] == pytest.approx(row.verdict.baselines["eager"] / 4, rel=0.01)


def test_a_policy_writes_the_candidates_and_its_best_stands_for_the_task(shop: Workshop) -> None:
    shop.write("suite/diagonal.py", REFERENCE)
    words = ("bench", "suite", *QUICK, "--policy", "playbook", "--group", "1", "--out", "r.jsonl")
    answer = shop.run(*words)
    assert answer.returncode == 0, answer.stderr
    rows = read_results([shop.folder / "r.jsonl"])
    assert {row.policy for row in rows} == {"playbook"}
    (best,) = rows
    assert best.named
    assert f"| diagonal | accepted | {best.verdict.speedup:.2f}x |" in (shop.folder / "r.md").read_text()
    again = shop.run(*words)
    assert "1 of 1 have a row" in again.stderr


def test_ctrl_c_keeps_what_is_done_and_ends_every_child(shop: Workshop) -> None:
    shop.write("suite/a.py", REFERENCE)
    shop.write("suite/a_optimized.py", "")
    shop.write("suite/b.py", REFERENCE)
    shop.write("suite/b_optimized.py", RIGHT)
    process = shop.start("bench", "suite", *QUICK, "--out", "r.jsonl")
    assert process.stderr is not None
    next(line for line in process.stderr if " a " in line)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert "1 of 2 are left; the same command goes on" in errors
    assert [row["task"] for row in rows_in(shop.folder / "r.jsonl")] == ["a"]
    assert "no code 1" in out
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob(f"cudal1-{process.pid}-*"))


CONSTANT = REFERENCE.replace("torch.diag(diagonal) @ matrix", "(matrix - matrix.mean()) * 0.0")


def test_references_without_candidates_are_examined_for_flaws(shop: Workshop) -> None:
    shop.write("suite/sound.py", REFERENCE)
    shop.write("suite/nought.py", CONSTANT)
    shop.write("suite/broken.py", REFERENCE.replace("torch.diag(diagonal)", "torch.diag(nothing)"))
    words = ("bench", "suite", *QUICK, "--examine", "--out", "r.jsonl")
    answer = shop.run(*words)
    assert answer.returncode == 0, answer.stderr
    verdicts = {row["task"]: row["verdict"] for row in rows_in(shop.folder / "r.jsonl")}
    assert {task: (verdict["category"], verdict["labels"]) for task, verdict in verdicts.items()} == {
        "sound": ("no_code", []),
        "nought": ("no_code", ["constant_output"]),
        "broken": ("reference_failed", []),
    }
    report = (shop.folder / "r.md").read_text()
    assert "| nought | constant\\_output | no code |" in report
    assert "3 of 3 have a row" in shop.run(*words).stderr


def test_a_reason_names_the_line_and_no_folder_of_ours(shop: Workshop) -> None:
    lines = [
        {
            "level_id": 1,
            "task_id": 1,
            "ref_code": REFERENCE,
            "custom_code": RIGHT.replace("import torch", "import gone"),
        },
        {"level_id": 1, "task_id": 2, "ref_code": REFERENCE.replace("get_inputs", "inputs"), "custom_code": RIGHT},
    ]
    shop.write("suite.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    answer = shop.run("bench", "suite.jsonl", *QUICK, "--out", "r.jsonl")
    reasons = [row["verdict"]["reason"] for row in rows_in(shop.folder / "r.jsonl")]
    assert answer.returncode == 0
    assert reasons[0].startswith("candidate.py:1: ModuleNotFoundError")
    assert reasons[1] == "L1_2.py has no get_inputs()"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("bench", "nowhere"), "no such suite"),
        (("bench", "suite"), "holds no candidates"),
        (("bench", "suite", "--policy", "playbook", "--candidates", "suite"), "exclude each other"),
        (("bench", "suite", "--share", "3/2"), "is not a part such as 1/4"),
        (("bench", "suite", "--policy", "playbook", "--out", "r.csv"), "does not end in .jsonl"),
        (("bench", "report", "suite/a.py"), "not a JSON object"),
        (("bench", "--ids"), "cudal1-tui bench --help"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_judged(shop: Workshop, words: tuple[str, ...], told: str) -> None:
    shop.write("suite/a.py", REFERENCE)
    answer: subprocess.CompletedProcess[str] = shop.run(*words)
    assert answer.returncode == 2
    assert told in answer.stderr
    assert not list(shop.folder.glob("*.jsonl"))
