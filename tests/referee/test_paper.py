"""The paper's rules of timing, one by one."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pytest
from cudal1_core.referee import paper
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.referee.verify import second_look, verify
from cudal1_core.verdict import Verdict

from tests.referee.conftest import RELU


def test_seven_buckets_in_order_of_time_and_the_median_of_their_means() -> None:
    found = paper.score([1.1, 1.3] * 7)
    assert found.means == pytest.approx((1.2,) * 7)
    assert found.value == 1.2
    steps = paper.score([2.00, 2.01, 2.02, 2.03, 2.04, 2.05, 9.0])
    assert len(steps.means) == 7
    assert steps.discarded
    uneven = paper.score([1.5] * 10)
    assert len(uneven.means) == 7
    assert uneven.variance == 0


@pytest.mark.parametrize(("ratio", "value"), [(1.118, 1.11), (0.992, 1.0), (2.999, 2.99), (0.501, 0.51)])
def test_the_score_is_rounded_towards_one(ratio: float, value: float) -> None:
    assert paper.score([ratio] * 14).value == value


def test_a_variance_above_0005_between_buckets_discards() -> None:
    near = 0.07  # 0.07 ** 2 is just below 0.005
    calm = paper.score([2 - near, 2 + near] * 3 + [2.0])
    assert calm.variance < paper.MOST_VARIANCE
    assert calm.value == 2.0
    wild = paper.score([2 - 0.08, 2 + 0.08] * 3 + [2.0])
    assert wild.variance > paper.MOST_VARIANCE
    assert wild.value is None


def test_a_drift_is_seen_though_single_pairs_only_scatter() -> None:
    source = random.Random(1)
    scatter = [2 + source.gauss(0, 0.3) for _ in range(7000)]
    assert not paper.score(scatter).discarded
    drift = [value + 0.4 * index / len(scatter) for index, value in enumerate(scatter)]
    assert paper.score(drift).discarded


def test_too_few_pairs_are_no_measurement() -> None:
    with pytest.raises(ValueError, match="6 pairs"):
        paper.score([1.0] * 6)


def test_what_is_measured_again() -> None:
    assert not paper.is_suspicious(3.0)
    assert paper.is_suspicious(3.01)
    assert not paper.is_suspicious(2.6, best=1.3)
    assert paper.is_suspicious(2.61, best=1.3)


def test_ten_percent_of_agreement() -> None:
    assert paper.agree(4.0, 4.4)
    assert paper.agree(4.0, 3.6)
    assert not paper.agree(4.0, 4.41)
    assert not paper.agree(4.0, None)


FAST = Verdict("accepted", speedup=4.0, speedup_interval=(3.9, 4.1), checks=())


def test_a_second_look_that_agrees_leaves_the_figure_and_one_that_does_not_takes_it() -> None:
    kept = second_look(FAST, replace(FAST, speedup=3.8), "cuda:1")
    assert (kept.speedup, kept.labels) == (4.0, ())
    assert kept.checks[-1].passed
    lost = second_look(FAST, replace(FAST, speedup=3.0), "cuda:1")
    assert (lost.verdict, lost.speedup, lost.labels) == ("accepted", None, ("unsettled",))
    assert "4.00x, then 3.00x" in lost.checks[-1].detail
    wrong = Verdict("rejected", category="wrong_result", reason="wrong now")
    assert second_look(FAST, wrong, "cpu").verdict == "rejected"


def test_paper_timing_spends_its_whole_time_and_says_what_came_of_the_buckets(
    tmp_path: Path, relu_reference: Path
) -> None:
    candidate = tmp_path / "c.py"
    candidate.write_text(RELU.format(name="ModelNew"))
    options = JudgeOptions(device="cpu", timing_budget_s=1.5, timing="paper")
    judged = asyncio.run(verify(relu_reference, candidate, options))
    verdict, measured = judged.verdict, judged.measured
    assert verdict.accepted, verdict.reason
    assert measured is not None
    assert len(measured.samples["called"]) >= paper.BUCKETS
    timing = next(check for check in verdict.checks if check.name == "timing")
    assert "7 buckets" in timing.detail
    assert (verdict.speedup is None) == ("unsettled" in verdict.labels) == (not timing.passed)
