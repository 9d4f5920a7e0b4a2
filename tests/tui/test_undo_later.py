"""Decisions of before a restart can be taken back, with the file that they wrote."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cudal1_core.events import DecisionMade, Event, RunStarted

from cudal1_tui.decisions import REPLACED
from cudal1_tui.session import Session
from tests.tui import recorded


def stored(reference: Path, folder: Path) -> list[Event]:
    """A run of before, which lay in `folder`."""
    events = [*recorded.opening(str(reference)), *recorded.first_round()]
    return [replace(event, folder=str(folder)) if isinstance(event, RunStarted) else event for event in events]


def session(tmp_path: Path, *decisions: DecisionMade) -> tuple[Session, recorded.ScriptedRun]:
    reference = tmp_path / "softmax.py"
    reference.write_text(recorded.REFERENCE)
    run = recorded.ScriptedRun()
    found = Session(run, reference=reference)
    found.receive([*stored(reference, tmp_path), *decisions])
    return found, run


def accepted_id(found: Session) -> str:
    return next(row.id for row in found.view.rows if row.verdict is not None and row.verdict.accepted)


def test_an_accepted_file_is_deleted_after_a_restart(tmp_path: Path) -> None:
    before, _ = session(tmp_path)
    id = accepted_id(before)
    before.select(id)
    before.accept()
    path = tmp_path / "softmax_optimized.py"
    assert path.is_file()
    after, run = session(tmp_path, DecisionMade(candidate=id, decision="kept", path=str(path)))
    note = after.undo()
    assert "deleted" in note.text
    assert not path.exists()
    assert run.asked == [(id, "none", None)]
    assert "Nothing to undo" in after.undo().text


def test_what_it_took_the_place_of_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "softmax_optimized.py"
    path.write_text("# mine\n")
    before, _ = session(tmp_path)
    id = accepted_id(before)
    before.select(id)
    before.accept("overwrite")
    assert (tmp_path / REPLACED / f"{id}.py").read_text() == "# mine\n"
    after, _ = session(tmp_path, DecisionMade(candidate=id, decision="kept", path=str(path)))
    after.undo()
    assert path.read_text() == "# mine\n"


def test_a_file_that_was_changed_since_stays(tmp_path: Path) -> None:
    before, _ = session(tmp_path)
    id = accepted_id(before)
    before.select(id)
    before.accept()
    path = tmp_path / "softmax_optimized.py"
    path.write_text(path.read_text() + "# changed\n")
    after, _ = session(tmp_path, DecisionMade(candidate=id, decision="kept", path=str(path)))
    assert "stays" in after.undo().text
    assert path.exists()


def test_decisions_are_taken_back_in_order_and_what_was_taken_back_stays_so(tmp_path: Path) -> None:
    before, _ = session(tmp_path)
    id = accepted_id(before)
    after, run = session(
        tmp_path,
        DecisionMade(candidate=id, decision="fed"),
        DecisionMade(candidate=id, decision="dismissed"),
        DecisionMade(candidate=id, decision="fed"),  # dismissed was taken back
    )
    after.undo()
    assert run.asked == [(id, "none", None)]
    assert "Nothing to undo" in after.undo().text
