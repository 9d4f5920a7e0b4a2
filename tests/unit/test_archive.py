"""The archive keeps every fact, under several processes, and says what earlier runs found."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from cudal1_core import archive as archive_module
from cudal1_core.advice.advice import Advice, Finding, Review, Similar
from cudal1_core.archive import _SCHEMA, SCHEMA_VERSION, Archive, ArchiveError, open_archive
from cudal1_core.candidate import Candidate
from cudal1_core.events import (
    AdviceGiven,
    CandidateWritten,
    Decision,
    DecisionMade,
    RoundFinished,
    RoundStarted,
    RunFinished,
    RunStarted,
    TaskDescribed,
    VerdictReached,
)
from cudal1_core.verdict import Check, Verdict

from tests.unit.scripted import code, make_task

GOOD = Verdict("accepted", speedup=2.0, speedup_interval=(1.9, 2.1), checks=(Check("a", True, "b"),))


def start(archive: Archive, run: str, **task: str) -> None:
    started = RunStarted(
        run=run,
        reference="/w/model.py",
        policy="replay",
        device="cpu",
        rounds=1,
        group=1,
        budget_s=None,
        folder="",
    )
    archive.record(run, started)
    archive.record(run, TaskDescribed(task=make_task(**task)))


def candidate(id: str, text: str = "") -> Candidate:
    return Candidate(
        id=id,
        round=1,
        policy="replay",
        source=code(id),
        text=text,
        techniques=("fusion",),
        exemplars=("c00",),
    )


def judge(archive: Archive, run: str, id: str, verdict: Verdict = GOOD) -> None:
    archive.record(run, CandidateWritten(candidate=candidate(id)))
    archive.record(run, VerdictReached(candidate=id, verdict=verdict, seconds=1.5))


def decide(archive: Archive, run: str, id: str, *decisions: Decision) -> None:
    for decision in decisions:
        archive.record(run, DecisionMade(candidate=id, decision=decision))


def found(archive: Archive, run: str = "new", **task: str) -> list[str]:
    return [judged.candidate.id for judged in archive.earlier(make_task(**task), run)]


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "archive.db")


def test_a_judged_candidate_comes_back_as_it_was(archive: Archive) -> None:
    start(archive, "r1")
    judge(archive, "r1", "c01")
    (judged,) = archive.earlier(make_task(), "r2")
    assert judged.verdict == GOOD
    assert judged.candidate.source == code("c01")
    assert judged.candidate.techniques == ("fusion",)
    assert judged.candidate.exemplars == ("c00",)
    assert judged.candidate.id == "r1/c01"


def test_only_what_may_be_shown_comes_back(archive: Archive) -> None:
    start(archive, "r1")
    judge(archive, "r1", "c01", Verdict("rejected", "crashed"))
    judge(archive, "r1", "c02", Verdict("accepted", speedup=9.0, labels=("not_drop_in",)))
    judge(archive, "r1", "c03", Verdict("accepted"))
    judge(archive, "r1", "c04")
    decide(archive, "r1", "c04", "dismissed")
    judge(archive, "r1", "c05")
    decide(archive, "r1", "c05", "dismissed", "none")
    assert found(archive) == ["r1/c05"]


def test_other_sources_devices_classes_and_the_run_itself_stay_out(archive: Archive) -> None:
    start(archive, "r1")
    judge(archive, "r1", "c01")
    assert found(archive, run="r1") == []
    assert found(archive, source="class Model: changed\n") == []
    assert found(archive, device_name="another processor") == []
    assert found(archive, model="Net") == []
    assert found(archive) == ["r1/c01"]


def test_rounds_and_endings_are_stored(archive: Archive, tmp_path: Path) -> None:
    start(archive, "r1")
    archive.record("r1", RoundStarted(round=1, exemplars=("c00",), prompt="write"))
    archive.record("r1", RoundFinished(round=1, accepted=2, rejected=1, best="c01", best_speedup=2.0))
    archive.record("r1", RunFinished(reason="budget", best="c01", best_speedup=2.0))
    other = sqlite3.connect(tmp_path / "archive.db")
    row = other.execute("SELECT exemplars, prompt, accepted, rejected FROM rounds").fetchone()
    assert row == ('["c00"]', "write", 2, 1)
    assert other.execute("SELECT reason, best, best_speedup FROM runs").fetchone() == ("budget", "c01", 2.0)
    assert other.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_text_that_is_not_valid_unicode_is_stored(archive: Archive) -> None:
    start(archive, "r1")
    archive.record("r1", CandidateWritten(candidate=candidate("c01", text="\udcff")))
    archive.record("r1", VerdictReached(candidate="c01", verdict=GOOD, seconds=0.1))
    assert archive.earlier(make_task(), "r2")[0].candidate.text == "?"


def test_choosing_exemplars_walks_indexes_alone(archive: Archive) -> None:
    from cudal1_core.archive import _EARLIER

    plan = archive._db.execute(f"EXPLAIN QUERY PLAN {_EARLIER}", ("", "", "", "", 1, 1)).fetchall()
    steps = [row["detail"] for row in plan]
    assert [step for step in steps if step.startswith("SCAN")] == []


_WRITER = """
import sys
from pathlib import Path
from tests.unit.test_archive import Archive, judge, start
archive = Archive(Path(sys.argv[1]))
start(archive, sys.argv[2])
for number in range(100):
    judge(archive, sys.argv[2], f"c{number}")
"""


def test_two_processes_write_and_create_at_once(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, path, f"r{n}"]) for n in range(2)]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert len(found(Archive(path))) == 200


def test_an_archive_of_a_newer_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    Archive(path)._db.execute("PRAGMA user_version = 99")
    with pytest.raises(ArchiveError, match="newer"):
        Archive(path)


def test_where_it_cannot_be_opened_work_goes_on_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    path.write_text("this is no database, but some text that is long enough to be read as a header")
    archive, trouble = open_archive(path)
    assert "not a database" in trouble
    start(archive, "r1")
    judge(archive, "r1", "c01")
    assert found(archive) == ["r1/c01"]
    assert path.read_text().startswith("this is no database")


ARCHIVES = Path(__file__).with_name("archives")  # as each older version made them


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_an_archive_of_an_older_program_is_brought_up_to_date(tmp_path: Path, version: int) -> None:
    path = tmp_path / "archive.db"
    old = sqlite3.connect(path)
    old.executescript((ARCHIVES / f"version_{version}.sql").read_text())
    old.close()
    archive = Archive(path)
    (before,) = archive.earlier(make_task(), "r2")
    assert (before.candidate.id, before.candidate.techniques, before.verdict.speedup) == ("r1/c01", ("fusion",), 2.0)
    start(archive, "r2")
    mended = Candidate(id="c02", round=1, policy="p", source=code("a"), text="t", prompt="mend it", repairs="c01")
    archive.record("r2", CandidateWritten(candidate=mended))
    archive.record("r2", VerdictReached(candidate="c02", verdict=GOOD, seconds=1.0))
    found = archive.earlier(make_task(), "r3")
    assert [one.candidate.id for one in found] == ["r2/c02", "r1/c01"]
    assert (found[0].candidate.prompt, found[0].candidate.repairs) == ("mend it", "c01")
    archive.close()
    fresh, updated = sqlite3.connect(":memory:"), sqlite3.connect(path)
    fresh.executescript(_SCHEMA)
    names = "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite%' ORDER BY name"
    assert updated.execute(names).fetchall() == fresh.execute(names).fetchall()
    for (table,) in fresh.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
        columns = f"SELECT name, type FROM pragma_table_info('{table}')"
        assert set(updated.execute(columns)) == set(fresh.execute(columns)), table


def test_an_update_that_fails_leaves_the_archive_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "archive.db"
    old = sqlite3.connect(path)
    old.executescript((ARCHIVES / "version_1.sql").read_text())
    old.close()
    monkeypatch.setitem(archive_module._UPDATES, 4, "ALTER TABLE verdicts ADD COLUMN task INTEGER; NONSENSE")
    with pytest.raises(ArchiveError):
        Archive(path)
    monkeypatch.undo()
    (before,) = Archive(path).earlier(make_task(), "r2")
    assert before.candidate.id == "r1/c01"


def test_an_archive_that_is_up_to_date_opens_under_another_processes_lock(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    archive = Archive(path)
    start(archive, "r1")
    judge(archive, "r1", "c01")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert found(Archive(path)) == ["r1/c01"]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (sqlite3.SQLITE_BUSY, "another process holds it"),
        (sqlite3.SQLITE_FULL, "Free some space"),
        (sqlite3.SQLITE_READONLY, "permissions"),
        (sqlite3.SQLITE_CORRUPT, "Move the file away"),
    ],
)
def test_what_keeps_it_from_being_used_is_told_with_what_to_do(number: int, words: str) -> None:
    error = sqlite3.OperationalError("as SQLite says it")
    error.sqlite_errorcode = number
    told = str(archive_module.unusable(Path("/w/archive.db"), error))
    assert "as SQLite says it" in told
    assert words in told


def test_advice_is_kept_with_its_candidate_and_the_newest_counts() -> None:
    archive = Archive()
    start(archive, "r1")
    judge(archive, "r1", "c01")
    assert archive.advice("r1", "c01") is None
    found = Advice((Finding("starts_threads", 3, "Thread(target=f)"),), (Similar("late", "k", "w", 0.5),))
    archive.record("r1", AdviceGiven(candidate="c01", advice=found))
    reviewed = Advice(found.findings, found.similar, Review("m", True, "a thread", 3, "it goes on"))
    archive.record("r1", AdviceGiven(candidate="c01", advice=reviewed))
    assert archive.advice("r1", "c01") == reviewed


def test_what_was_rejected_as_a_cheat_is_found_again_once_each() -> None:
    archive = Archive()
    for run in ("r1", "r2"):
        start(archive, run)
        judge(archive, run, "c01", Verdict("rejected", "reuses_output", "changed later"))
        judge(archive, run, "c02", Verdict("rejected", "wrong_result"))
        judge(archive, run, "c03")
    found = archive.cheats()
    assert [judged.candidate.id for judged in found] == ["r2/c01"]
    assert found[0].verdict.reason == "changed later"
    assert archive.cheats(limit=0) == ()
    assert archive.cheats(among=1) == ()  # the newest verdict is of no cheat
