"""A candidate against the other baselines of its reference. Pure arithmetic, quick to import."""

from __future__ import annotations

from collections.abc import Mapping

EAGER = "eager"


def versus(speedup: float | None, baselines: Mapping[str, float], name: str) -> float | None:
    """A candidate's speedup over a baseline, from its speedup over eager and the baselines' ms a call.

    Both were measured in pairs with eager, so what differs between the two occasions cancels out.
    """
    if speedup is None or EAGER not in baselines or name not in baselines:
        return None
    return speedup * baselines[name] / baselines[EAGER]


def best_other(baselines: Mapping[str, float]) -> str | None:
    """The fastest baseline besides eager."""
    return min((name for name in baselines if name != EAGER), key=lambda name: baselines[name], default=None)
