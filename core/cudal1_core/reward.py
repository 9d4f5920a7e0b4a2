"""What training sees of a verdict: the speedup, normalised and smoothed.

CUDA-L1 (arXiv 2507.14111), section 3: r' = clip((r - mean) / std, -k, k) with k = 1.5, so that one
suspiciously fast candidate cannot pull the policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev

from cudal1_core.verdict import Verdict

CLIP = 1.5


def raw_reward(verdict: Verdict, *, allow_not_drop_in: bool = False) -> float | None:
    """The speedup of an accepted candidate, 0 for a rejected one, None where nothing was settled.

    An accepted candidate that does not load the reference's weights earns nothing.
    """
    if verdict.verdict == "unjudgeable":
        return None
    if verdict.verdict == "rejected":
        return 0.0
    if "not_drop_in" in verdict.labels and not allow_not_drop_in:
        return 0.0
    return verdict.speedup


def smooth(reward: float, mean: float, std: float, clip: float = CLIP) -> float:
    """One reward against the mean and standard deviation of its task; 0 where all rewards are the same."""
    if std <= 0:
        return 0.0
    return max(-clip, min(clip, (reward - mean) / std))


def smooth_group(rewards: Sequence[float | None], clip: float = CLIP) -> list[float | None]:
    """A group against its own statistics; what did not settle stays None and counts for nothing."""
    settled = [reward for reward in rewards if reward is not None]
    if not settled:
        return list(rewards)
    mean, std = fmean(settled), pstdev(settled)
    return [None if reward is None else smooth(reward, mean, std, clip) for reward in rewards]
