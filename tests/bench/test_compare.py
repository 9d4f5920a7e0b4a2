"""What counts as a change between two results, and as a regression."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cudal1_core.bench.compare import compare
from cudal1_core.bench.results import Results
from cudal1_core.bench.row import Row
from cudal1_core.errors import UsageError
from cudal1_core.verdict import Verdict

from cudal1_tui.cli import main
from tests.bench.rows import accepted, rejected, row

FIRST = [
    accepted("L1/1", 2.0, (1.9, 2.1)),
    accepted("L1/2", 2.0, (1.99, 2.01)),
    accepted("L1/3", 2.0, (1.99, 2.01)),
    accepted("L1/4", 2.0, (1.99, 2.01)),
    rejected("L1/5", "crashed"),
    accepted("L1/6", 3.0),
    accepted("L1/7", 3.0),
    rejected("L1/8", "crashed"),
]
SECOND = [
    accepted("L1/1", 1.8, (1.7, 1.95)),  # intervals meet
    accepted("L1/2", 1.97, (1.96, 1.98)),  # apart, but within 2 %
    accepted("L1/3", 1.5, (1.49, 1.51)),
    accepted("L1/4", 4.0, (3.9, 4.1)),
    accepted("L1/5", 1.1),
    rejected("L1/6", "wrong_result"),
    row("L1/7", Verdict("unjudgeable", "no_device", "gone")),
    rejected("L1/8", "wrong_result"),
]


def kept(path: Path, rows: list[Row]) -> str:
    with Results(path) as results:
        results.add(rows)
    return str(path)


def test_each_kind_of_change() -> None:
    found = compare(FIRST, SECOND, "second", 0.02)
    assert [(change.task, change.change) for change in found.changes] == [
        ("L1/1", "same"),
        ("L1/2", "same"),
        ("L1/3", "slower"),
        ("L1/4", "faster"),
        ("L1/5", "gained"),
        ("L1/6", "lost"),
        ("L1/7", "unknown"),
        ("L1/8", "same"),
    ]
    assert [change.task for change in found.worse] == ["L1/3", "L1/6"]
    assert (found.judged, found.same_verdict) == (7, 4)
    # Ratios 0.9, 0.985, 0.75, 2.
    assert found.geomean == pytest.approx((0.9 * 0.985 * 0.75 * 2) ** 0.25)
    assert found.median_change == pytest.approx((0.1 + 0.25) / 2)


def test_a_wider_tolerance_forgives() -> None:
    assert [change.task for change in compare(FIRST, SECOND, "second", 0.3).worse] == ["L1/6"]


def test_the_exit_status_tells_a_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = kept(tmp_path / "a.jsonl", FIRST), kept(tmp_path / "b.jsonl", SECOND)
    assert main(["bench", "compare", first, second]) == 1
    told = capsys.readouterr().out
    assert "1 faster, 1 slower, 1 gained, 1 lost beyond 2 %" in told
    assert "1 not judged in both" in told
    assert [line.split()[0] for line in told.splitlines() if line.startswith("L1/")] == ["L1/3", "L1/4", "L1/5", "L1/6"]
    assert main(["bench", "compare", first, first]) == 0
    assert "nothing changed" in capsys.readouterr().out
    assert main(["bench", "compare", second, first, "--json"]) == 1  # L1/4 is slower the other way round
    facts = json.loads(capsys.readouterr().out)
    assert {change["task"]: change["change"] for change in facts[0]["changes"]}["L1/4"] == "slower"


def test_three_columns_are_each_compared_with_the_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [kept(tmp_path / f"{name}.jsonl", rows) for name, rows in (("a", FIRST), ("b", FIRST), ("c", SECOND))]
    assert main(["bench", "compare", *paths]) == 1
    told = capsys.readouterr().out
    assert "b against a: nothing changed" in told
    assert "c against a: 1 faster" in told


def test_results_without_a_task_in_common_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, other = kept(tmp_path / "a.jsonl", FIRST), kept(tmp_path / "b.jsonl", [accepted("L3/1", 1.0)])
    assert main(["bench", "compare", first, other]) == UsageError.exit_status
    assert "no judged task in common" in capsys.readouterr().err
    assert main(["bench", "compare", first]) == 2
