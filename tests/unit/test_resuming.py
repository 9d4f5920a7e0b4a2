"""A run goes on where it was: what it found, what was decided, and what was left unjudged."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
from cudal1_core.archive import Archive
from cudal1_core.candidate import Candidate
from cudal1_core.errors import UsageError
from cudal1_core.events import CandidateWritten, DecisionMade, Event, RunFinished, TokenArrived, VerdictReached
from cudal1_core.history import candidates_of, one_run, page_of_runs
from cudal1_core.journal import Journal, is_at_work
from cudal1_core.paths import RunFolder, new_run_folder
from cudal1_core.policies.base import Fragment
from cudal1_core.pruning import prune
from cudal1_core.recall import recall
from cudal1_core.restoring import bring_in
from cudal1_core.rounds import Run, RunOptions
from cudal1_core.verdict import Verdict

from cudal1_tui.cli import main
from tests.unit.scripted import Bench, ScriptedPolicy, ScriptedReferee, code, make_task, told, whole

FAST = Verdict("accepted", speedup=3.0, speedup_interval=(2.9, 3.1))


def log_of(bench: Bench) -> Path:
    assert bench.folder.events is not None
    return bench.folder.events


def again(bench: Bench, *groups: list[Fragment], referee: ScriptedReferee | None = None, rounds: int = 2) -> Run:
    policy = ScriptedPolicy(list(groups))  # type: ignore[arg-type]
    options = RunOptions(rounds=rounds)
    return Run(
        Path("/w/model.py"),
        options,
        referee or ScriptedReferee(),
        policy,
        bench.archive,
        bench.folder,
        recalled=recall(log_of(bench)),
    )


def cut(bench: Bench, wanted: type[Event], number: int = 1, more: bytes = b"") -> None:
    """The log as a kill leaves it: it ends with the event of that kind, and perhaps half a line."""
    lines, kept = log_of(bench).read_bytes().splitlines(keepends=True), 0
    for index, line in enumerate(lines):
        kept += line.startswith(b'{"event": "%s"' % wanted.name.encode())
        if kept == number:
            log_of(bench).write_bytes(b"".join(lines[: index + 1]) + more)
            return
    raise AssertionError("it is not there")


def test_found_and_decided_is_there_again_and_rounds_go_on(bench: Bench) -> None:
    bench.referee.verdicts = {"a": FAST}
    run = bench.run(whole("a", "b"))

    async def first() -> None:
        async for event in run.events():
            if isinstance(event, RunFinished):
                run.decide("c01", "fed")

    asyncio.run(first())
    run = again(bench, whole("c"))
    events = asyncio.run(told(run))
    assert [event.candidate.id for event in events if isinstance(event, CandidateWritten)] == ["c01", "c02", "c03"]
    assert run.decisions == {"c01": "fed"}
    assert list(run.judged) == ["c01", "c02", "c03"]
    assert run.best is not None
    assert run.best.candidate.id == "c01"
    stored = log_of(bench).read_bytes().count(b'"event": "candidate_written"')
    assert stored == 3  # what was known is not stored twice
    (row,) = page_of_runs(bench.archive)
    assert (row.written, row.accepted, row.best) == (3, 3, "c01")


def test_what_was_written_but_not_judged_is_judged(bench: Bench) -> None:
    asyncio.run(told(bench.run(whole("a", "b"))))
    cut(bench, VerdictReached, more=b'{"event": "verdict_rea')
    referee = ScriptedReferee()
    run = again(bench, referee=referee, rounds=1)
    asyncio.run(told(run))
    assert referee.judged == ["c02"]
    assert list(run.judged) == ["c01", "c02"]


def test_a_text_that_was_cut_off_leaves_no_row_and_its_number_free_of_clashes(bench: Bench) -> None:
    asyncio.run(told(bench.run([Fragment(0, code("a")), Fragment(0, "", done=True)])))
    cut(bench, TokenArrived)
    run = again(bench, whole("b"), rounds=2)
    events = asyncio.run(told(run))
    assert [event.candidate for event in events if isinstance(event, TokenArrived)] == ["c02"]
    assert list(run.judged) == ["c02"]


def test_another_source_is_refused(bench: Bench) -> None:
    asyncio.run(told(bench.run(whole("a"))))
    run = again(bench, referee=ScriptedReferee(task=make_task("class Model: changed\n")))
    asyncio.run(told(run))
    assert isinstance(run.error, UsageError)
    assert "has changed since this run" in str(run.error)


def test_a_run_that_another_process_writes_is_refused(bench: Bench) -> None:
    asyncio.run(told(bench.run(whole("a"))))
    other = Journal(bench.folder, Archive())
    other.claim()
    assert is_at_work(bench.folder)
    with pytest.raises(UsageError, match="open in another process"):
        again(bench)
    other.close()
    assert not is_at_work(bench.folder)
    again(bench)


@pytest.mark.parametrize(("text", "said"), [("", "holds no run"), ("no\nevent\n", "line 1: not an event")])
def test_a_log_that_is_none_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        recall(path)


def test_an_archive_that_is_held_is_caught_up_with(bench: Bench, tmp_path: Path) -> None:
    holder = sqlite3.connect(tmp_path / "archive.db", isolation_level=None)
    journal = Journal(bench.folder, bench.archive)
    bench.archive._db.execute("PRAGMA busy_timeout = 0")
    holder.execute("BEGIN IMMEDIATE")
    written = [CandidateWritten(candidate=Candidate(f"c0{n}", 1, "p", code(str(n)), "")) for n in range(3)]
    trouble = journal.record(written[0])
    assert trouble is not None
    assert "Another process holds the archive" in trouble.title
    assert journal.record(written[1]) is None
    assert candidates_of(bench.archive, bench.folder.id) == []
    holder.execute("COMMIT")
    journal.record(written[2])
    assert [one.id for one in candidates_of(bench.archive, bench.folder.id)] == ["c00", "c01", "c02"]
    assert log_of(bench).read_bytes().count(b"\n") == 3


def test_what_the_archive_lacks_is_brought_in_from_the_logs(bench: Bench, tmp_path: Path) -> None:
    bench.referee.verdicts = {"a": FAST}
    run = bench.run(whole("a"))

    async def play() -> None:
        async for event in run.events():
            if isinstance(event, VerdictReached):
                run.decide("c01", "kept", Path("/w/a.py"))

    asyncio.run(play())
    cut(bench, DecisionMade, more=b'{"event": "round_f')
    archive = Archive(tmp_path / "another.db")
    runs = bench.folder.path
    assert runs is not None
    for _ in range(2):  # the second time there is nothing left to bring in
        bring_in(archive, runs.parent)
        row = one_run(archive, bench.folder.id[:10])
        assert row is not None
        assert [(one.candidate, one.decision, one.path) for one in row.decisions] == [("c01", "kept", "/w/a.py")]
        assert (row.written, row.accepted, row.reason) == (1, 1, None)


def played(tmp_path: Path, archive: Archive, decision: str | None = None) -> RunFolder:
    folder = new_run_folder(tmp_path)
    run = Run(Path("/w/m.py"), RunOptions(rounds=1), ScriptedReferee(), ScriptedPolicy([whole("a")]), archive, folder)

    async def play() -> None:
        async for event in run.events():
            if isinstance(event, VerdictReached) and decision:
                run.decide("c01", decision)  # type: ignore[arg-type]

    asyncio.run(play())
    return folder


def test_pruning_takes_the_oldest_and_leaves_what_was_taken(tmp_path: Path) -> None:
    archive = Archive(tmp_path / ".cudal1" / "archive.db") if (tmp_path / ".cudal1").mkdir() is None else None
    assert archive is not None
    names = sorted((folder.id, folder) for folder in (played(tmp_path, archive, how) for how in (None, "kept", None)))
    open_one = Journal(names[-1][1], archive)
    open_one.claim()
    kept = {run.id for run in page_of_runs(archive) if run.decisions} | {names[-1][0]}
    would = prune(archive, tmp_path / ".cudal1", 0, dry=True)
    assert len(page_of_runs(archive)) == 3
    done = prune(archive, tmp_path / ".cudal1", 0)
    assert done.runs == would.runs
    assert {run.id for run in page_of_runs(archive)} == kept
    assert {path.name for path in (tmp_path / ".cudal1" / "runs").iterdir()} == kept
    assert done.after < done.before
    open_one.close()
    prune(archive, tmp_path / ".cudal1", 0, decided=True)
    assert page_of_runs(archive) == []
    assert prune(archive, tmp_path / ".cudal1", 10**9).runs == ()


def test_history_pages_through_runs_and_reads_what_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / ".cudal1").mkdir()
    archive = Archive(tmp_path / ".cudal1" / "archive.db")
    ids = {played(tmp_path, archive).id for _ in range(3)}
    first = page_of_runs(archive, limit=2)
    rest = page_of_runs(archive, before=first[-1].started)
    assert {run.id for run in (*first, *rest)} == ids
    assert page_of_runs(archive, reference="/w/another.py") == []
    archive.close()
    (tmp_path / ".cudal1" / "archive.db").chmod(0o444)
    (tmp_path / ".cudal1").chmod(0o555)
    assert len(page_of_runs(Archive.for_reading(tmp_path / ".cudal1" / "archive.db"))) == 3
    (tmp_path / ".cudal1").chmod(0o755)


def test_a_candidate_is_written_as_accepting_would_or_bare(
    bench: Bench, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bench.referee.verdicts = {"a": FAST, "b": Verdict("rejected", "crashed")}
    asyncio.run(told(bench.run(whole("a", "b"))))
    run, out = str(log_of(bench)), tmp_path / "out.py"
    assert main(["export", run, "--candidate", "c01", "--out", str(out)]) == 0
    assert out.read_text().startswith("# 3.00x")
    assert out.read_text().endswith(code("a"))
    assert main(["export", run, "--candidate", "c02", "--out", str(out)]) == 2
    assert "exists" in capfd.readouterr().err
    assert main(["export", run, "--candidate", "c02", "--out", str(out), "--overwrite"]) == 0
    assert out.read_text() == code("b")
    assert main(["export", run, "--candidate", "c09"]) == 2
    assert "Candidates: c01, c02." in capfd.readouterr().err
    assert main(["export", run, "--candidate", "c01"]) == 0
    assert capfd.readouterr().out.startswith("# 3.00x")
