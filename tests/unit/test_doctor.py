"""doctor tells what is missing, what to do, and whether a run is possible."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cudal1_tui.commands import doctor
from cudal1_tui.commands.doctor import Finding


def test_without_torch_no_run_is_possible() -> None:
    findings = doctor.torch("No module named 'torch'")
    assert [finding.state for finding in findings] == ["missing"]
    assert "pip install torch" in findings[0].next_step
    assert not doctor.run_is_possible(findings)


@pytest.mark.parametrize(("built", "advice"), [(None, "install a CUDA build"), ("13.0", "driver may be missing")])
def test_without_cuda_runs_go_to_the_cpu(built: str | None, advice: str) -> None:
    torch, cuda = doctor.torch({"version": "2.13", "built": built, "cuda": False, "devices": []})
    assert (torch.state, cuda.state) == ("works", "limited")
    assert advice in cuda.next_step
    assert doctor.run_is_possible([torch, cuda])


def test_devices_are_named() -> None:
    _, cuda = doctor.torch({"version": "2.13", "built": "13.0", "cuda": True, "devices": ["H200", "H200"]})
    assert (cuda.state, cuda.detail) == ("works", "H200, H200")


def test_a_missing_compiler_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/g++" if name == "g++" else None)
    assert doctor.compiler("C++", ("c++", "g++"), "x").detail == "/bin/g++"
    missing = doctor.compiler("nvcc", ("nvcc",), "CUDA sources need it")
    assert (missing.state, missing.next_step) == ("limited", "Optional: CUDA sources need it.")


@pytest.mark.parametrize(
    ("environment", "is_terminal", "state", "words"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, True, "works", "16 million colours"),
        ({"TERM": "screen-256color", "TMUX": "x"}, True, "works", "256 colours, 80x24, in tmux"),
        ({"TERM": "linux"}, True, "works", "16 colours"),
        ({"TERM": "dumb"}, True, "limited", "TERM is dumb"),
        ({"TERM": "xterm"}, False, "limited", "not a terminal"),
    ],
)
def test_terminals(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], is_terminal: bool, state: str, words: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    finding = doctor.terminal(environment, is_terminal)
    assert finding.state == state
    assert words in finding.detail


def test_a_terminal_that_is_too_small_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "10")
    assert doctor.terminal({"TERM": "xterm"}, True).state == "limited"


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.folder(tmp_path).state == "works"
    monkeypatch.setattr("os.access", lambda path, mode: False)
    finding = doctor.folder(tmp_path)
    assert (finding.state, str(tmp_path) in finding.detail) == ("limited", True)


@pytest.mark.parametrize(("state", "status"), [("works", 0), ("missing", 1)])
def test_json_and_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: doctor.State, status: int
) -> None:
    findings = [Finding("Python", "works", "3.13"), Finding("torch", state, "x", "do this")]
    monkeypatch.setattr(doctor, "examine", lambda: findings)
    assert doctor.main(as_json=True) == status
    answer = json.loads(capsys.readouterr().out)
    assert answer["ready"] == (status == 0)
    assert [finding["topic"] for finding in answer["findings"]] == ["Python", "torch"]
    assert doctor.main(as_json=False) == status
    assert "do this" in capsys.readouterr().out
