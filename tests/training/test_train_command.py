"""`cudal1-tui train` as a person runs it: a tiny random model, two steps a stage, killed in between."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("trl", reason="trl is not installed")

from cudal1_core.trained import trained_models
from cudal1_training import synthetic

REFERENCE = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return {body}


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return []
"""
SUM = REFERENCE.format(body="torch.sum(x, dim=1) * 2.0")
RELU = REFERENCE.format(body="torch.relu(x) + x")

SMALL = (
    "--model tiny --steps 2 --group 2 --timing 0.3 --device cpu --lora-rank 4 --seed 3 --samples 1 --set sft.batch=2 "
    "--set self.rounds=1 --set self.samples=2 --set self.longest=12 --set rl.longest=12 --set report.longest=12 "
    "--set rl.checkpoint_every=1"
)  # fmt: skip


def answer(reference: str) -> str:
    """The reference itself, as a candidate: right, and no faster."""
    return reference.partition("def get_inputs")[0].replace("class Model", "class ModelNew").rstrip() + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two references of two families, one of which is held out, and a replayed release with right code for both."""
    top = tmp_path_factory.mktemp("training")
    (top / "references").mkdir()
    sources = {"sum": SUM, "relu": RELU}
    rows = []
    for name, source in sources.items():
        (top / "references" / f"{name}.py").write_text(source)
        rows.append(json.dumps({"ref_code": source, "custom_code": answer(source)}))
    (top / "release.jsonl").write_text("\n".join(rows) + "\n")
    return top


def command(*words: str) -> list[str]:
    tasks = ["--tasks", "references", "--teachers", "replay", "--replay", "release.jsonl"]
    stage, *more = words
    return [sys.executable, "-m", "cudal1_tui", "train", stage, *tasks, *SMALL.split(), *more]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), cwd=folder, capture_output=True, text=True, timeout=800, check=False)


def events(training: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (training / "events.jsonl").read_text().splitlines()]


def trainers(pid: int) -> Iterator[psutil.Process]:
    for child in psutil.Process(pid).children(recursive=True):
        if child.cmdline()[1:3] == ["-m", "cudal1_training"]:
            yield child


def test_a_dry_run_says_what_would_be_trained_on_and_leaves_nothing(folder: Path) -> None:
    done = run(folder, "all", "--out", "dry", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "1 tasks trained on, 1 families" in done.stdout
    assert "1 tasks held out" in done.stdout
    assert "rl: 2 steps" in done.stdout
    assert not (folder / "dry").exists()


@pytest.mark.timeout(900)
def test_all_stages_go_on_after_kill_9_with_the_same_next_step(folder: Path) -> None:
    first = subprocess.Popen(command("all", "--out", "all", "--json"), cwd=folder, stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    seen: list[dict[str, Any]] = []
    saved = False
    for line in first.stdout:
        seen.append(json.loads(line))
        saved = saved or (seen[-1]["event"] == "training_saved" and seen[-1]["stage"] == "rl")
        if saved and seen[-1]["event"] == "round_finished":  # step two is judged and not yet learned from
            for trainer in trainers(first.pid):
                trainer.kill()
            break
    first.stdout.close()
    assert first.wait(60) == 3
    split = json.loads((folder / "all" / "split.json").read_text())
    again = run(folder, "all", "--out", "all")
    assert again.returncode == 0, again.stderr
    assert "1 of 2 done before" in again.stderr
    assert json.loads((folder / "all" / "split.json").read_text()) == split

    written: dict[str, list[str]] = {}
    prompts: dict[int, list[str]] = {}
    stage = ""
    for event in events(folder / "all"):
        stage = event["stage"] if event["event"] == "training_phase" else stage
        if event["event"] == "candidate_written" and stage == "rl":
            written.setdefault(event["candidate"]["id"], []).append(event["candidate"]["text"])
        if event["event"] == "round_started" and stage == "rl":
            prompts.setdefault(event["round"], []).append(event["prompt"])
    assert set(written) == {"r1-1", "r1-2", "r2-1", "r2-2"}
    assert [len(written[id]) for id in sorted(written)] == [1, 1, 2, 2]
    assert written["r2-1"][0] == written["r2-1"][1]
    assert written["r2-2"][0] == written["r2-2"][1]
    assert prompts[2][0] == prompts[2][1]
    assert "Version 1" in prompts[2][0]  # what stage one brought is shown

    held = {row["name"] for row in split if row["held_out"]}
    trained = {json.loads(line)["task"] for line in (folder / "all" / "sft" / "examples.jsonl").open()}
    assert len(held) == 1
    assert held.isdisjoint(trained)
    report = json.loads((folder / "all" / "report" / "report.json").read_text())
    assert [stage["stage"] for stage in report["stages"]] == ["start", "sft", "self", "rl"]
    assert all(stage["tasks"] == 1 for stage in report["stages"])
    assert "| rl | 1 |" in again.stdout
    assert {row["stage"] for row in map(json.loads, (folder / "all" / "metrics.jsonl").open())} == {"sft", "rl"}
    assert list((folder / "all" / "tensorboard" / "rl").glob("events.out.*"))


def test_the_models_are_listed_with_the_words_that_use_them(folder: Path) -> None:
    """After the training above."""
    found = trained_models(folder)
    assert [model.stage for model in found] == ["sft", "rl"]  # stage two found nothing right and changed nothing
    assert all(model.there for model in found)
    words = [sys.executable, "-m", "cudal1_tui", "models"]
    told = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60, check=True).stdout
    assert f"--adapter {folder / 'all' / 'rl' / 'result'}" in told
    assert "0 of 1 tasks right" in told


@pytest.mark.timeout(900)
def test_two_processes_share_the_archive_and_show_one_prompt_to_one_group(folder: Path) -> None:
    """After the training above, whose archive has code to show."""
    done = run(folder, "rl", "--out", "two", "--processes", "2", "--samples", "0")
    assert done.returncode == 0, done.stderr
    prompts: dict[int, set[str]] = {}
    ids = set()
    for event in events(folder / "two"):
        if event["event"] == "round_started":
            prompts.setdefault(event["round"], set()).add(event["prompt"])
        if event["event"] == "candidate_written":
            ids.add(event["candidate"]["id"])
    assert ids == {"r1-1", "r1-2", "r2-1", "r2-2"}
    assert [len(prompts[number]) for number in (1, 2)] == [1, 1]


def test_other_settings_in_the_same_folder_are_refused(folder: Path) -> None:
    """After the training above."""
    done = run(folder, "rl", "--out", "two", "--exemplars", "none")
    assert done.returncode == 2
    assert "rl.exemplars was 'bucket', is 'none'" in done.stderr


def test_mistakes_are_told_before_anything_is_done(folder: Path) -> None:
    words = [sys.executable, "-m", "cudal1_tui", "train", "sft"]
    for more, said in (
        (["--model", "tiny", "--out", "none"], "There is no task to train on"),
        (["--tasks", "references"], "No model is named"),
    ):
        done = subprocess.run([*words, *more], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 2, done.stderr
        assert said in done.stderr


def test_generated_tasks_are_references_that_run(tmp_path: Path) -> None:
    program = "import json, sys\nfor source in json.load(sys.stdin):\n    here = {}\n    exec(source, here)\n"
    program += "    here['Model']()(*here['get_inputs']())\n"
    sources = json.dumps([one.source for one in synthetic.generate(28, 0, small=True)])
    done = subprocess.run(
        [sys.executable, "-c", program], input=sources, capture_output=True, text=True, timeout=120, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
