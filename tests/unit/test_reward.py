"""Rewards: rejected earns nothing, what did not settle is None, one wild speedup cannot pull the rest."""

from __future__ import annotations

import pytest
from cudal1_core.reward import raw_reward, smooth, smooth_group
from cudal1_core.verdict import Verdict


@pytest.mark.parametrize(
    ("verdict", "reward"),
    [
        (Verdict("accepted", speedup=2.0), 2.0),
        (Verdict("accepted", speedup=None), None),
        (Verdict("accepted", speedup=9.0, labels=("not_drop_in",)), 0.0),
        (Verdict("rejected", "wrong_result"), 0.0),
        (Verdict("unjudgeable", "no_device"), None),
    ],
)
def test_reward_of_a_verdict(verdict: Verdict, reward: float | None) -> None:
    assert raw_reward(verdict) == reward


def test_not_drop_in_earns_its_speedup_where_it_is_allowed() -> None:
    verdict = Verdict("accepted", speedup=9.0, labels=("not_drop_in",))
    assert raw_reward(verdict, allow_not_drop_in=True) == 9.0


def test_smoothing_normalises_and_clips_at_one_and_a_half() -> None:
    assert smooth(1.5, mean=1.0, std=0.5) == 1.0
    assert smooth(120.0, mean=1.0, std=0.5) == 1.5
    assert smooth(0.0, mean=3.0, std=0.5) == -1.5


def test_equal_rewards_teach_nothing() -> None:
    assert smooth_group([1.2, 1.2, 1.2]) == [0.0, 0.0, 0.0]


def test_what_did_not_settle_changes_no_statistics() -> None:
    assert smooth_group([0.0, None, 2.0]) == [-1.0, None, 1.0]
    assert smooth_group([None, None]) == [None, None]
