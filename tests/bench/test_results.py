"""The file of rows: what survives a kill, and what may not be put together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cudal1_core.bench.results import Results, read_results
from cudal1_core.bench.row import Row, options_facts, policy_key, row_key
from cudal1_core.bench.suites import Source, Subject
from cudal1_core.errors import UsageError
from cudal1_core.referee.options import JudgeOptions

from tests.bench.rows import accepted, rejected

FACTS = options_facts(JudgeOptions(device="cuda:1"))


def test_a_row_comes_back_as_it_was() -> None:
    row = accepted("L2/96", 1.28, (1.2, 1.3), claimed={"eager": 368.2}, found=("CUDA graphs",), title="a \ud800 b")
    assert Row.from_json(row.to_json()) == row
    with pytest.raises(ValueError, match="not a row"):
        Row.from_json('{"task": "L2/96"}')


def test_a_torn_last_line_is_cut_off_and_the_rest_kept(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with Results(path) as results:
        results.add([accepted("L1/1", 2.0)])
        results.add([accepted("L1/2", 3.0)])
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    with Results(path) as results:
        assert [row.task for row in results.rows] == ["L1/1"]
        results.add([accepted("L1/2", 3.5)])
    assert [row.verdict.speedup for row in read_results([path])] == [2.0, 3.5]


def test_one_bench_at_a_time_writes_a_file(tmp_path: Path) -> None:
    with Results(tmp_path / "r.jsonl"), pytest.raises(UsageError, match="another bench"), Results(tmp_path / "r.jsonl"):
        pass
    with Results(tmp_path / "r.jsonl"):
        pass  # free again


def test_rows_of_two_devices_are_never_put_into_one_file(tmp_path: Path) -> None:
    row = accepted("L1/1", 2.0)
    other = replace(row, task="L1/2", verdict=replace(row.verdict, device={"name": "NVIDIA A100"}))
    with Results(tmp_path / "r.jsonl") as results:
        results.add([row])
        with pytest.raises(UsageError, match="holds rows from NVIDIA H200"):
            results.add([other])
        results.add([rejected("L1/3", "no_code")])  # says nothing of a device
    assert [row.task for row in read_results([tmp_path / "r.jsonl"])] == ["L1/1", "L1/3"]


def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text('{"event": "run_started"}\nmine')
    with pytest.raises(UsageError, match=r"notes\.jsonl:1: not a row"), Results(path):
        pass
    assert path.read_text() == '{"event": "run_started"}\nmine'


def test_the_newest_row_of_a_candidate_counts(tmp_path: Path) -> None:
    with Results(tmp_path / "a.jsonl") as results:
        results.add([accepted("L1/1", 2.0, key="old"), accepted("L1/1", 2.5, key="new")])
    with Results(tmp_path / "b.jsonl") as results:
        results.add([accepted("L1/2", 3.0)])
    rows = read_results([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert [(row.task, row.verdict.speedup) for row in rows] == [("L1/1", 2.5), ("L1/2", 3.0)]


def test_a_later_run_of_a_policy_replaces_all_of_its_candidates(tmp_path: Path) -> None:
    earlier = [accepted("L1/1", 9.0, candidate=name, policy="playbook", key="one") for name in ("c01", "c02")]
    later = [accepted("L1/1", 2.0, candidate="c01", policy="playbook", key="two")]
    with Results(tmp_path / "a.jsonl") as results:
        results.add([*earlier, *later])
    assert [row.verdict.speedup for row in read_results([tmp_path / "a.jsonl"])] == [2.0]


def test_what_may_change_a_verdict_changes_the_key() -> None:
    subject, source = Subject("L1/1", "reference"), Source("c", "candidate")
    key = row_key(subject, source, FACTS)
    assert key == row_key(subject, source, options_facts(JudgeOptions(device="cuda:0")))  # either GPU of a machine
    others = {
        row_key(replace(subject, text="other"), source, FACTS),
        row_key(subject, Source("c", "other"), FACTS),
        row_key(subject, source, options_facts(JudgeOptions(device="cuda", allow_precision="tf32"))),
        row_key(subject, source, options_facts(JudgeOptions(device="cpu"))),
        policy_key(subject, {"name": "playbook", "seed": 0}, FACTS),
        policy_key(subject, {"name": "playbook", "seed": 1}, FACTS),
    }
    assert len(others | {key}) == 7


def test_a_helper_that_the_reference_imports_belongs_to_the_key(tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text("import one\n")
    (tmp_path / "one.py").write_text("from two import x\n")
    (tmp_path / "two.py").write_text("x = 1\n")
    subject = Subject("ref", "import one\n", tmp_path / "ref.py")
    before = row_key(subject, Source("c", ""), FACTS)
    (tmp_path / "two.py").write_text("x = 2\n")
    assert row_key(subject, Source("c", ""), FACTS) != before
