"""How often advice agrees with the referee, which is the truth here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cudal1_core.advice.case_base import CHEATS
from cudal1_core.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Score:
    """Counts of opinions on candidates that the referee judged; unusable answers are no opinions."""

    caught: int = 0  # said to cheat, and the referee found it so
    missed: int = 0
    wronged: int = 0  # said to cheat, but accepted
    cleared: int = 0
    silent: int = 0  # no opinion

    @property
    def precision(self) -> float | None:
        """Of what was said to cheat, the part that did; None where nothing was."""
        said = self.caught + self.wronged
        return self.caught / said if said else None

    @property
    def recall(self) -> float | None:
        """Of what cheats, the part that was said to; None where nothing does."""
        cheats = self.caught + self.missed
        return self.caught / cheats if cheats else None


def is_cheat(verdict: Verdict) -> bool | None:
    """By the referee; None for what is neither: merely wrong, broken, or not judged."""
    if verdict.accepted:
        return False
    return True if verdict.category in CHEATS else None


def score(opinions: Iterable[tuple[bool | None, bool | None]]) -> Score:
    """Of pairs (said to cheat, cheats); pairs whose truth is not known are left out."""
    counts = dict.fromkeys(("caught", "missed", "wronged", "cleared", "silent"), 0)
    for said, cheats in opinions:
        if cheats is None:
            continue
        if said is None:
            counts["silent"] += 1
        elif cheats:
            counts["caught" if said else "missed"] += 1
        else:
            counts["wronged" if said else "cleared"] += 1
    return Score(**counts)
