"""The table's arithmetic against values worked out by hand."""

from __future__ import annotations

import pytest
from cudal1_core.bench import figures as f
from cudal1_core.bench.table import agreement
from cudal1_core.verdict import Verdict

from tests.bench.rows import accepted, rejected, row

# Speedups 0.5, 1, 2, 4, one wrong, one without code, one that nobody could judge.
ROWS = [
    accepted("L1/1", 2.0),
    accepted("L1/2", 0.5),
    accepted("L1/3", 1.0),
    accepted("L2/1", 4.0, win="graph"),
    rejected("L2/2", "wrong_result"),
    rejected("L2/3", "no_code"),
    row("L2/4", Verdict("unjudgeable", "nondeterministic", "it varies")),
]


def test_the_figures_of_a_group_are_those_worked_out_by_hand() -> None:
    line = f.figures("all", f.outcomes(ROWS))
    assert (line.tasks, line.with_code, line.accepted, line.faster) == (6, 5, 4, 2)
    assert line.success == pytest.approx(4 / 6)
    assert line.mean == pytest.approx(7.5 / 4)
    assert line.geomean == pytest.approx(4 ** (1 / 4))  # 0.5 * 1 * 2 * 4 = 4
    assert line.maximum == 4.0
    # Ordered 0.5 1 2 4: places 0.75, 1.5 and 2.25 of 0 to 3.
    assert (line.p25, line.median, line.p75) == (pytest.approx(0.875), pytest.approx(1.5), pytest.approx(2.5))


def test_fast_p_counts_every_judged_task_and_is_strict() -> None:
    line = f.figures("all", f.outcomes(ROWS))
    assert line.fast_p[0.0] == pytest.approx(4 / 6)
    assert line.fast_p[0.5] == pytest.approx(3 / 6)  # 0.5 is not faster than 0.5
    assert line.fast_p[1.0] == pytest.approx(2 / 6)
    assert line.fast_p[2.0] == pytest.approx(1 / 6)


def test_1_01_itself_is_not_above_1_01() -> None:
    assert f.figures("all", f.outcomes([accepted("L1/1", 1.01), accepted("L1/2", 1.02)])).faster == 1


def test_a_group_without_anything_accepted_has_no_speedups() -> None:
    line = f.figures("all", f.outcomes([rejected("L1/1", "crashed")]))
    assert (line.mean, line.geomean, line.median, line.maximum, line.success) == (None, None, None, None, 0.0)


def test_levels_stand_apart_and_flawed_tasks_are_in_no_line_but_their_own() -> None:
    flawed = accepted("L2/80", 100.0, labels=("constant_output",))
    lines = {line.name: line for line in f.groups(f.outcomes([*ROWS, flawed]))}
    assert list(lines) == ["sound tasks", "level 1", "level 2", "flawed tasks", "all tasks"]
    assert (lines["sound tasks"].tasks, lines["sound tasks"].maximum) == (6, 4.0)
    assert (lines["level 1"].tasks, lines["level 2"].tasks) == (3, 3)
    assert (lines["flawed tasks"].tasks, lines["flawed tasks"].mean) == (1, 100.0)
    assert (lines["all tasks"].tasks, lines["all tasks"].maximum) == (7, 100.0)


def test_a_flaw_is_known_from_a_rejected_candidate_too() -> None:
    found = f.outcomes([row("L2/80", Verdict("rejected", "crashed", "it raised", labels=("weak_task",)))])
    assert found[0].flaws == ("weak_task",)


def test_the_best_drop_in_stands_for_its_task() -> None:
    rows = [
        rejected("L1/1", "crashed", candidate="a"),
        accepted("L1/1", 9.0, labels=("not_drop_in",), candidate="b"),
        accepted("L1/1", 2.0, candidate="c"),
        accepted("L1/1", 3.0, candidate="d"),
    ]
    (outcome,) = f.outcomes(rows)
    assert (outcome.row.candidate, outcome.speedup) == ("d", 3.0)


def test_against_another_baseline_counts_the_quotient_of_both_speedups_over_eager() -> None:
    rows = [
        accepted("L1/1", 2.0, baselines={"eager": 2.0, "compile": 0.5}),
        accepted("L1/2", 8.0, baselines={"eager": 6.0, "compile": 1.5}),
        rejected("L1/3", "crashed"),
    ]
    lines = {line.name: line for line in f.by_baseline(f.outcomes(rows))}
    assert (lines["eager"].mean, lines["eager"].tasks) == (pytest.approx(5.0), 3)  # the paired speedups, not 6 ms
    assert (lines["compile"].mean, lines["compile"].tasks) == (pytest.approx(1.25), 3)


def test_shares_tell_with_and_without() -> None:
    rows = [
        accepted("L1/1", 4.0, found=("CUDA graphs", "streams")),
        accepted("L1/2", 1.0, found=("CUDA graphs",), labels=("no_authored_kernel",)),
        accepted("L1/3", 3.0),
    ]
    lines = {line.name: line for line in f.by_technique(f.outcomes(rows))}
    graphs = lines["CUDA graphs"]
    assert (graphs.count, graphs.geomean, graphs.without, graphs.authored) == (
        2,
        pytest.approx(2.0),
        pytest.approx(3.0),
        1,
    )
    assert lines["streams"].without == pytest.approx(3**0.5)


def test_rejections_are_counted_by_candidate_most_frequent_first() -> None:
    rows = [rejected("L1/1", "crashed"), rejected("L1/2", "wrong_result"), rejected("L1/3", "wrong_result")]
    assert f.rejections(f.outcomes(rows)) == [("wrong_result", 2), ("crashed", 1)]


def test_two_runs_agree_where_verdict_and_category_are_the_same() -> None:
    first = [accepted("L1/1", 2.0), accepted("L1/2", 1.0), rejected("L1/3", "crashed"), rejected("L1/4", "no_code")]
    second = [accepted("L1/1", 2.02), accepted("L1/2", 1.1), rejected("L1/3", "wrong_result"), accepted("L1/9", 1.0)]
    found = agreement(first, second)
    assert (found.both, found.same, found.timed, found.within) == (3, 2, 2, 1)
    assert found.median_change == pytest.approx((0.01 + 0.1) / 2)
    assert found.differing == (("L1/3", "crashed", "wrong result"),)
