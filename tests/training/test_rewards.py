"""Rewards against the running mean of their task; what was not settled is no reward at all."""

from __future__ import annotations

import math
import statistics

import pytest
from cudal1_training.rewards import Rewards, Running
from cudal1_training.settings import RlSettings


def test_running_statistics_are_those_of_all_values() -> None:
    values = [1.0, 0.0, 2.5, 1.25, 0.0]
    running = Running()
    for value in values:
        running.add(value)
    assert running.mean == pytest.approx(statistics.fmean(values))
    assert running.deviation == pytest.approx(statistics.pstdev(values))


def test_a_suspiciously_fast_candidate_is_cut_at_one_and_a_half_deviations() -> None:
    rewards = Rewards(RlSettings())
    rewards.smoothed([("t", 1.0 + 0.1 * (at % 3)) for at in range(30)])
    (cut,) = rewards.smoothed([("t", 100.0)])
    assert cut == 1.5
    (lowest,) = Rewards(RlSettings(clip=0.5)).smoothed([("t", 0.0)])
    assert lowest == 0.0  # one value alone has no deviation


def test_what_is_unscorable_stays_none_and_moves_nothing() -> None:
    rewards = Rewards(RlSettings())
    found = rewards.smoothed([("t", 1.0), ("t", None), ("t", 3.0)])
    assert found[1] is None
    assert (rewards.tasks["t"].count, rewards.tasks["t"].mean) == (2, 2.0)
    assert found[0] == -found[2] == pytest.approx(-1.0)  # type: ignore[operator]


def test_tasks_are_smoothed_apart_and_not_at_all_where_it_is_off() -> None:
    rewards = Rewards(RlSettings())
    slow, fast = rewards.smoothed([("a", 1.0), ("b", 50.0), ("a", 1.2), ("b", 60.0)])[:2]
    assert slow == pytest.approx(-1.0)
    assert fast == pytest.approx(-1.0)
    assert Rewards(RlSettings(smoothing=False)).smoothed([("a", 7.0), ("a", None)]) == [7.0, None]


def test_groups_without_a_difference_are_counted_in_a_row() -> None:
    rewards = Rewards(RlSettings())
    assert rewards.watch([[0.0, 0.0], [0.0, None]]) == 2
    assert rewards.watch([[0.0, 1.0]]) == 0
    assert rewards.watch([[None, None]]) == 1


def test_statistics_survive_a_checkpoint() -> None:
    rewards, again = Rewards(RlSettings()), Rewards(RlSettings())
    rewards.smoothed([("t", 1.0), ("t", 2.0)])
    rewards.watch([[0.0, 0.0]])
    again.restore(rewards.to_json())
    assert again.smoothed([("t", 3.0)]) == rewards.smoothed([("t", 3.0)])
    assert again.flat == 1
    assert math.isclose(again.tasks["t"].deviation, rewards.tasks["t"].deviation)
