"""Accepting writes one readable file, whole or not at all, and never over another."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from cudal1_core.accept import accepted_path, free_path, header, why_not, write_accepted
from cudal1_core.candidate import Candidate
from cudal1_core.errors import UsageError
from cudal1_core.reference import Task
from cudal1_core.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = 'from __future__ import annotations\n\n\nclass ModelNew:\n    """é [bold] \\x1b"""\n'
CANDIDATE = Candidate(id="c07", round=2, policy="playbook", source=SOURCE, text=SOURCE)
VERDICT = Verdict(
    verdict="accepted",
    speedup=2.31,
    speedup_interval=(2.28, 2.34),
    labels=("no_authored_kernel",),
    device={"name": "NVIDIA H200"},
    versions={"torch": "2.13.0", "python": "3.11.7"},
)


@pytest.fixture
def task(tmp_path: Path) -> Task:
    reference = tmp_path / "soft max.py"
    reference.write_text("class Model: ...\n")
    return Task(
        path=str(reference),
        model="Model",
        source="class Model: ...\n",
        source_hash="0",
        device="cuda:0",
        device_name="NVIDIA H200",
        dtype="float32",
        inputs=("float32[4, 4]",),
        outputs=("float32[4, 4]",),
        parameters=0,
    )


def test_the_file_holds_the_source_under_a_short_header(task: Task) -> None:
    path = write_accepted(task, CANDIDATE, VERDICT)
    text = path.read_text(encoding="utf-8")
    assert path.name == "soft max_optimized.py"
    assert text.endswith("\n\n" + SOURCE)
    comment = text.split("\n\n", 1)[0].splitlines()
    assert len(comment) <= 5
    assert all(line.startswith("# ") for line in comment)
    assert "2.31x [2.28, 2.34]" in comment[0]
    assert "NVIDIA H200" in comment[0]
    assert "torch 2.13.0" in "\n".join(comment)
    assert "no_authored_kernel" in "\n".join(comment)
    assert comment[-1] == "# judge it again: cudal1-tui verify 'soft max.py' 'soft max_optimized.py'"
    ast.parse(text)


def test_an_existing_file_is_never_replaced_unasked(task: Task) -> None:
    target = accepted_path(task)
    target.write_text("mine")
    with pytest.raises(FileExistsError):
        write_accepted(task, CANDIDATE, VERDICT)
    assert target.read_text() == "mine"
    assert write_accepted(task, CANDIDATE, VERDICT, overwrite=True) == target
    assert SOURCE in target.read_text(encoding="utf-8")


def test_no_temporary_file_is_left_behind(task: Task) -> None:
    accepted_path(task).write_text("mine")
    with pytest.raises(FileExistsError):
        write_accepted(task, CANDIDATE, VERDICT)
    write_accepted(task, CANDIDATE, VERDICT, overwrite=True)
    names = sorted(path.name for path in accepted_path(task).parent.iterdir())
    assert names == ["soft max.py", "soft max_optimized.py"]


def test_a_free_name_counts_up(task: Task) -> None:
    names = [write_accepted(task, CANDIDATE, VERDICT, path=free_path(accepted_path(task))).name for _ in range(3)]
    assert names == ["soft max_optimized.py", "soft max_optimized_2.py", "soft max_optimized_3.py"]


def test_a_dangling_link_counts_as_taken(task: Task) -> None:
    accepted_path(task).symlink_to("nowhere.py")
    assert free_path(accepted_path(task)).name == "soft max_optimized_2.py"
    with pytest.raises(FileExistsError):
        write_accepted(task, CANDIDATE, VERDICT)


@pytest.mark.parametrize("word", ["rejected", "unjudgeable"])
def test_only_accepted_verdicts_are_written(task: Task, word: str) -> None:
    verdict = replace(VERDICT, verdict=word, category="wrong_result")
    with pytest.raises(UsageError, match="c07 cannot be accepted") as caught:
        write_accepted(task, CANDIDATE, verdict)
    assert "wrong result" in str(caught.value)
    assert not accepted_path(task).exists()
    assert why_not(None) is not None
    assert why_not(VERDICT) is None


def test_the_reference_is_never_the_target(task: Task, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is the reference"):
        write_accepted(task, CANDIDATE, VERDICT, path=tmp_path / "soft max.py", overwrite=True)
    assert (tmp_path / "soft max.py").read_text() == "class Model: ...\n"


def test_the_file_gets_the_permissions_of_the_reference(task: Task, tmp_path: Path) -> None:
    (tmp_path / "soft max.py").chmod(0o640)
    assert write_accepted(task, CANDIDATE, VERDICT).stat().st_mode & 0o777 == 0o640


def test_a_line_break_in_a_name_stays_inside_the_comment(task: Task, tmp_path: Path) -> None:
    hostile = replace(VERDICT, device={"name": "card\nimport os"}, labels=("a\rb",))
    text = header(task, CANDIDATE, hostile, tmp_path / "x.py")
    assert all(line.startswith("# ") for line in text.splitlines())


def test_a_file_elsewhere_is_named_in_full(task: Task, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    path = write_accepted(task, CANDIDATE, VERDICT, path=folder / "fast.py")
    assert f"verify '{tmp_path}/soft max.py' fast.py" in path.read_text(encoding="utf-8")
