"""The estimator: what the interval promises, on made-up samples with a known ratio."""

from __future__ import annotations

import random

import pytest
from cudal1_core.referee.timing import Estimate, Saving, between_processes, estimate, held_to, hidden, saving


def noisy(ratio: float, pairs: int, noise: float, seed: int) -> list[tuple[float, float]]:
    source = random.Random(seed)
    return [(ratio * source.lognormvariate(0, noise), source.lognormvariate(0, noise)) for _ in range(pairs)]


def test_exact_pairs_give_the_exact_ratio() -> None:
    found = estimate([(0.004, 0.002)] * 8)
    assert found.speedup == pytest.approx(2.0)
    assert (found.low, found.high) == (pytest.approx(2.0), pytest.approx(2.0))
    assert found.reference_ms == pytest.approx(4.0)
    assert found.candidate_ms == pytest.approx(2.0)


def test_what_the_interval_does_not_tell_from_one_is_one() -> None:
    assert estimate(noisy(1.0, 25, 0.05, 3)).proven == 1.0
    assert estimate(noisy(1.5, 25, 0.05, 3)).proven == pytest.approx(1.5, rel=0.1)
    assert estimate(noisy(0.5, 25, 0.05, 3)).proven == pytest.approx(0.5, rel=0.1)


def test_outliers_do_not_move_the_figure() -> None:
    pairs = [(0.004, 0.002)] * 9 + [(0.4, 0.002), (0.004, 0.2)]
    assert estimate(pairs).speedup == pytest.approx(2.0)


def test_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    hits = 0
    for seed in range(200):
        found = estimate(noisy(1.5, 25, 0.05, seed), seed)
        hits += found.low <= 1.5 <= found.high
    assert hits >= 178  # 95 % promised; a percentile bootstrap of a median is a little narrow


def test_few_pairs_give_their_whole_range() -> None:
    found = estimate([(2.0, 1.0), (3.0, 1.0), (4.0, 1.0)])
    assert (found.low, found.high) == (pytest.approx(2.0), pytest.approx(4.0))


BLOCKS = [(0.0100, 0.0020), (0.0101, 0.0021), (0.0100, 0.0020), (0.0099, 0.0020), (0.0100, 0.0019), (0.0100, 0.0020)]
CLAIMED = saving(BLOCKS).seconds


def test_a_cost_that_both_sides_pay_is_not_held_against_a_candidate() -> None:
    found = estimate(BLOCKS)
    slower_protocol = [(reference + 0.05, candidate + 0.05) for reference, candidate in BLOCKS]
    assert held_to(found, CLAIMED, saving(slower_protocol)) is found


def test_a_saving_that_vanishes_call_by_call_does_not_count() -> None:
    found = estimate(BLOCKS)
    honest_in_singles = [(0.0100, 0.0101), (0.0100, 0.0099), (0.0101, 0.0100)]
    held = held_to(found, CLAIMED, saving(honest_in_singles))
    assert found.speedup == pytest.approx(5.0, rel=0.05)
    assert 1.0 <= held.speedup < 1.05


def test_half_a_saving_leaves_half_of_it() -> None:
    held = held_to(estimate(BLOCKS), CLAIMED, saving([(0.0100, 0.0060)] * 6))
    assert held.speedup == pytest.approx(10 / 6, rel=0.05)


def test_a_slower_candidate_has_no_saving_to_lose() -> None:
    slow = [(candidate, reference) for reference, candidate in BLOCKS]
    found = estimate(slow)
    assert held_to(found, saving(slow).seconds, saving([(0.01, 0.5)] * 6)) is found


def test_what_measuring_itself_leaves_unsure_is_not_held_against_a_candidate() -> None:
    found = estimate(BLOCKS)
    less = [(reference, candidate + 0.0006) for reference, candidate in BLOCKS]
    assert held_to(found, CLAIMED, saving(less), slack=0.1 * CLAIMED) is found
    assert held_to(found, CLAIMED, saving(less)) is not found


def test_times_scattered_by_others_prove_nothing_for_a_candidate() -> None:
    """Equal code in single calls, on a machine where something else takes turns with them."""
    loaded = saving([(0.010, 0.010), (0.030, 0.010), (0.010, 0.010), (0.010, 0.028), (0.031, 0.012)])
    assert loaded.high > CLAIMED
    found = estimate(BLOCKS)
    assert held_to(found, CLAIMED, loaded) is found
    assert held_to(found, CLAIMED, loaded, noise=50e-6).speedup <= 1.02


def test_work_done_while_outputs_arrive_is_found_in_each_block_by_itself() -> None:
    """A candidate says "done" at once and computes afterwards; blocks are disturbed, but in both their times."""
    source = random.Random(4)
    early, honest, delivered = [], [], []
    for _ in range(7):
        reference, candidate = (0.010 + source.expovariate(100) for _ in range(2))
        early.append((reference, 0.0001))
        honest.append((reference, candidate))
        delivered.append((reference + 0.002, candidate + 0.002))
    assert held_to(estimate(early), saving(early).seconds, hidden(early, delivered)).proven == 1.0
    found = estimate(honest)
    assert held_to(found, saving(honest).seconds, hidden(honest, delivered)) is found


def test_nobody_is_quicker_than_a_bound() -> None:
    found = estimate([(0.010, 0.000001)] * 6)
    assert held_to(
        found, saving([(0.010, 0.000001)] * 6).seconds, Saving(0.005, 0.005, 0.005)
    ).speedup == pytest.approx(2)


def test_scattering_its_own_times_proves_nothing_for_a_candidate() -> None:
    source = random.Random(1)
    scattered = [(0.0100, 0.0100 + source.choice((0.0, 0.0, 0.02))) for _ in range(40)]
    assert held_to(estimate(BLOCKS), CLAIMED, saving(scattered)).speedup <= 1.02


def test_a_claim_too_large_never_makes_a_candidate_slower_than_the_reference() -> None:
    worse = [(0.0100, 0.0300)] * 6
    assert held_to(estimate(BLOCKS), CLAIMED, saving(worse)).speedup == 1.0


def test_the_interval_covers_other_processes_too() -> None:
    found = between_processes(Estimate(2.0, 1.9, 2.2, 2.0, 1.0, 9))
    assert (found.low, found.high) == pytest.approx((1.9 / 1.01, 2.2 * 1.01))
    assert (found.speedup, found.reference_ms, found.candidate_ms) == (2.0, 2.0, 1.0)
    assert between_processes(Estimate(0.98, 0.963, 0.997, 1.0, 1.0, 40)).proven == 1.0
