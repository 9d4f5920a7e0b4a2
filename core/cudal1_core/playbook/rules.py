"""A rule is one exact rewrite of traced steps; a technique may hold several rules of a kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import fx

from cudal1_core.playbook.graphs import Editor
from cudal1_core.playbook.technique import Draft, Finding, Stage

Change = Callable[[fx.Node, Editor], fx.Node | None]


@dataclass(frozen=True, slots=True)
class Rule:
    change: Change  # the step that replaces the given one, or None
    finding: Finding


@dataclass(frozen=True, slots=True)
class GraphTechnique:
    """Applies its rules one after the other wherever they match."""

    name: str
    stage: Stage
    promise: int
    rules: tuple[Rule, ...]

    def apply(self, draft: Draft) -> Finding | None:
        hits = [rule.finding for rule in self.rules if draft.rewrite(rule.change)]
        if not hits:
            return None
        return Finding(" ".join(h.analysis for h in hits), " ".join(h.design for h in hits))
