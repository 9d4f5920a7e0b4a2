"""Accepted files: their header is read, renewed and marked; their code is never touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cudal1_core.accept import write_accepted
from cudal1_core.accepted import Accepted, accepted_of, is_ours, read_accepted, renew
from cudal1_core.candidate import Candidate
from cudal1_core.checking import find
from cudal1_core.errors import UsageError
from cudal1_core.standing import state_of
from cudal1_core.verdict import Verdict

from tests.unit.scripted import code, make_task

FIRST = Verdict(
    "accepted", speedup=2.0, speedup_interval=(1.9, 2.1), versions={"torch": "2.6"}, device={"name": "a GPU (one)"}
)


@pytest.fixture
def accepted(tmp_path: Path) -> Accepted:
    reference = tmp_path / "my model.py"
    reference.write_text("class Model: ...\n")
    task = replace(make_task(model="Net"), path=str(reference))
    path = write_accepted(task, Candidate("c01", 1, "playbook", "# first\n" + code("a"), ""), FIRST)
    found = read_accepted(path)
    assert found is not None
    return found


def body(path: Path) -> str:
    return path.read_text().partition("\n\n")[2]


def test_the_header_says_all_that_judging_again_needs(accepted: Accepted, tmp_path: Path) -> None:
    assert accepted.reference == tmp_path / "my model.py"
    assert (accepted.model, accepted.was, accepted.marked) == ("Net", 2.0, False)
    assert accepted_of(accepted.reference) == [accepted]
    assert is_ours(accepted.path)


def test_a_renewed_file_has_the_new_figure_and_the_same_code(accepted: Accepted) -> None:
    before = body(accepted.path)
    now = Verdict("accepted", speedup=1.5, versions={"torch": "2.7"}, labels=("throttled",), device={"name": "B"})
    renew(accepted, now)
    head = accepted.path.read_text().partition("\n\n")[0].splitlines()
    assert head[0] == "# 1.50x as fast as my model.py (Net), on B"
    assert "# versions: torch 2.7" in head
    assert head[-2:] == [
        "# labels: throttled",
        "# judge it again: cudal1-tui verify 'my model.py' 'my model_optimized.py'",
    ]
    assert body(accepted.path) == before
    renew(accepted, replace(now, labels=()))
    assert "labels" not in accepted.path.read_text()


def test_a_wrong_file_is_marked_once_and_unmarked_when_it_is_right(accepted: Accepted) -> None:
    original = accepted.path.read_text()
    wrong = Verdict("rejected", "wrong_result", "differs\nin line 2")
    renew(accepted, wrong)
    renew(accepted, wrong)
    lines = accepted.path.read_text().splitlines()
    assert lines[0].startswith("# NO LONGER RIGHT as my model.py")
    assert "wrong result: differs in line 2" in lines[0]
    assert lines[1:] == original.splitlines()
    again = read_accepted(accepted.path)
    assert again is not None
    assert again.marked
    assert again.was == 2.0
    renew(again, FIRST)
    assert accepted.path.read_text() == original


def test_what_cannot_be_judged_changes_nothing(accepted: Accepted) -> None:
    before = accepted.path.stat().st_mtime_ns
    renew(accepted, Verdict("unjudgeable", "bad_reference"))
    assert accepted.path.stat().st_mtime_ns == before


def test_bytes_that_are_not_utf8_and_the_mode_stay(accepted: Accepted) -> None:
    accepted.path.write_bytes(accepted.path.read_bytes() + b"# \xff\r\n")
    accepted.path.chmod(0o640)
    renew(accepted, replace(FIRST, speedup=3.0))
    assert accepted.path.read_bytes().endswith(b"# \xff\r\n")
    assert accepted.path.stat().st_mode & 0o777 == 0o640
    assert accepted.path.read_text(errors="replace").startswith("# 3.00x")


def test_other_files_are_not_accepted_ones(tmp_path: Path) -> None:
    for text in ("", "# a comment\nx = 1\n", "# judge it again: cudal1-tui verify '\n"):
        path = tmp_path / "other.py"
        path.write_text(text)
        assert read_accepted(path) is None


def test_files_folders_and_references_are_found(accepted: Accepted, tmp_path: Path) -> None:
    for path in (accepted.path, accepted.reference, tmp_path):
        assert find([path]) == [accepted]
    assert find([accepted.path, tmp_path, accepted.reference]) == [accepted]
    (tmp_path / "notes.txt").write_text("")
    assert find([tmp_path / "notes.txt"]) == []
    (tmp_path / ".gitignore").write_text("*_optimized.py\n")
    assert find([tmp_path]) == []
    with pytest.raises(UsageError, match="no such file"):
        find([tmp_path / "missing"])


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        (Verdict("accepted", speedup=1.01), "faster"),
        (Verdict("accepted", speedup=1.0), "right"),
        (Verdict("accepted"), "right"),
        (Verdict("accepted", speedup=0.99), "slower"),
        (Verdict("rejected", "crashed"), "wrong"),
        (Verdict("unjudgeable", "unsupported"), "unjudged"),
    ],
)
def test_states(verdict: Verdict, state: str) -> None:
    assert state_of(verdict) == state
