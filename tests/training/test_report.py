"""What a training says: its report by stage, its models, and its progress."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="trl is not installed")

from cudal1_core.bench.row import Row
from cudal1_core.errors import UsageError
from cudal1_core.events import RunFinished, RunStarted, TrainingPhase, TrainingReported, TrainingStepped, VerdictReached
from cudal1_core.trained import Trained, register, trained_models
from cudal1_core.verdict import Verdict
from cudal1_training.folder import PausedError, TrainingFolder, append_line, read_lines
from cudal1_training.reporting import stage_figures, write_report
from cudal1_training.settings import read_settings
from cudal1_training.watching import MARK, newest_checkpoint
from rich.console import Console

from cudal1_tui.commands.train_progress import TrainProgress


def row(task: str, verdict: Verdict, name: str = "c1") -> Row:
    return Row(task, f"{task}/{name}", verdict, candidate=name)


def accepted(speedup: float, win: str = "torch_level") -> Verdict:
    return Verdict("accepted", speedup=speedup, win=win)


ROWS = [
    row("a", accepted(2.0)),
    row("a", Verdict("rejected", "wrong_result", "off by one"), "c2"),
    row("b", accepted(1.0, "kernel")),
    row("c", Verdict("rejected", "build_failed", "no such op")),
    row("d", Verdict("rejected", "no_code", "prose")),
    row("e", Verdict("rejected", "wrong_result", "zeros")),
]


def test_a_stage_is_counted_by_how_far_its_best_answers_came() -> None:
    figures = stage_figures("sft", ROWS)
    assert (figures.tasks, figures.answers, figures.has_code, figures.builds) == (5, 6, 4, 3)
    assert (figures.right, figures.faster, figures.right_answers) == (2, 1, 2)
    assert (figures.mean, figures.median) == (1.5, 1.5)
    assert figures.geomean == pytest.approx(2**0.5)
    assert figures.wins == {"torch_level": 1, "kernel": 1}


def test_the_report_has_stages_costs_and_the_settings_of_ablations(tmp_path: Path) -> None:
    settings = read_settings(None, ["model.name=tiny", "rl.exemplars=random"])
    folder = TrainingFolder(tmp_path / "out", settings)
    folder.spent("rl judging", 30.0)
    folder.spent("rl training", 90.0)
    text = write_report(folder, "tiny", [stage_figures("start", ROWS[3:]), stage_figures("rl", ROWS)], 8, 5, gpus=2)
    assert "| rl | 5 | 4 | 3 | 2 | 1 | 1.50x | 1.41x | 1.50x | 2/6 |" in text
    assert "| start | 3 | 2 | 1 | 0 | 0 | – | – | – | 0/3 |" in text
    assert "waited for the referee 25% of its time" in text
    assert "0.07 GPU hours on 2 GPUs" in text
    assert '`rl.exemplars` = "random"' in text
    data = json.loads((tmp_path / "out" / "report" / "report.json").read_text())
    assert [stage["right"] for stage in data["stages"]] == [0, 2]


def test_the_folder_goes_on_with_the_same_settings_and_no_others(tmp_path: Path) -> None:
    settings = read_settings(None, ["model.name=tiny"])
    TrainingFolder(tmp_path / "out", read_settings(None, ["model.name=mistaken"]))  # nothing had begun
    first = TrainingFolder(tmp_path / "out", settings)
    (tmp_path / "out" / "split.json").write_text("[]")
    first.state.stages["sft"] = {"base": "b", "adapter": "a"}
    first.keep()
    again = TrainingFolder(tmp_path / "out", read_settings(None, ["model.name=tiny", "rl.steps=5", "judge.timing=1"]))
    assert again.state.stages == {"sft": {"base": "b", "adapter": "a"}}
    with pytest.raises(UsageError, match="other settings") as caught:
        TrainingFolder(tmp_path / "out", read_settings(None, ["model.name=tiny", "rl.beta=0"]))
    assert "rl.beta was 0.04, is 0.0" in caught.value.meaning
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        TrainingFolder(tmp_path / "full", settings)


def test_a_full_disk_pauses(tmp_path: Path) -> None:
    folder = TrainingFolder(tmp_path / "out", read_settings(None))
    folder.need(1.0, "a checkpoint")
    with pytest.raises(PausedError, match="disk is nearly full"):
        folder.need(1e18, "a checkpoint")


def test_a_checkpoint_counts_once_it_is_whole(tmp_path: Path) -> None:
    for step in (2, 10, 12):
        (tmp_path / f"checkpoint-{step}").mkdir()
    assert newest_checkpoint(tmp_path) is None
    for step in (2, 10):  # 12 was killed while it was written
        (tmp_path / f"checkpoint-{step}" / MARK).write_text(json.dumps({"step": step, "draws": step}))
    assert newest_checkpoint(tmp_path) == (tmp_path / "checkpoint-10", {"step": 10, "draws": 10})


def test_lines_survive_a_kill_in_the_middle_of_the_last(tmp_path: Path) -> None:
    append_line(tmp_path / "rows.jsonl", {"task": "a"})
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"task": "b", "ri')
    assert read_lines(tmp_path / "rows.jsonl") == [{"task": "a"}]


def test_models_are_listed_once_each_and_a_cut_line_costs_one(tmp_path: Path) -> None:
    for right in (1, 2):
        model = Trained("rl", "/t", "base", str(tmp_path), "tiny", 8, 2, {"right": right}, at=1.0)
        register(model, tmp_path)
    with (tmp_path / ".cudal1" / "models.jsonl").open("a") as file:
        file.write('{"stage": "rl"')
    (found,) = trained_models(tmp_path)
    assert found.report == {"right": 2}
    assert found.there
    assert found.options == f"--policy transformers --model base --adapter {tmp_path}"


def test_progress_says_what_is_done_what_came_out_and_how_long_it_takes() -> None:
    out = io.StringIO()
    progress = TrainProgress(Console(file=out, width=120))
    started = RunStarted(
        run="t", reference="/w", policy="tiny", device="cpu", rounds=0, group=2, budget_s=None, folder="/w"
    )  # fmt: skip
    for event in (
        started,
        TrainingPhase(stage="rl", what="contrastive GRPO", total=4, done=1),
        VerdictReached(candidate="r2-1", verdict=accepted(1.5), seconds=1.0),
        VerdictReached(candidate="r2-2", verdict=Verdict("rejected", "dishonest", "moved the clock"), seconds=1.0),
        TrainingStepped(stage="rl", step=2, total=4, metrics={"loss": 0.5, "other": 9.0}, left_s=3725.0),
        TrainingReported(path="", text="# Report\n"),
        RunFinished(reason="stopped", best=None, best_speedup=None),
    ):
        progress.tell(event)
    said = out.getvalue()
    assert "1 of 4 done before" in said
    assert "r2-1 accepted 1.50x" in said
    assert "r2-2 dishonest: moved the clock" in said
    assert "rl 2/4 loss 0.5 1:02:05 left" in said
    assert "the same command goes on" in said
    assert progress.finished
    assert progress.report == "# Report\n"
