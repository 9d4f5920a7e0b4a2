"""Which techniques to try next, alone and together, by what the referee measured so far."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from cudal1_core.candidate import source_hash
from cudal1_core.playbook.messages import Tried, Written
from cudal1_core.playbook.printing import Unprintable
from cudal1_core.playbook.rehearsal import fits
from cudal1_core.playbook.subject import Subject
from cudal1_core.playbook.technique import Draft, Finding, Technique
from cudal1_core.playbook.toolbox import APART, TECHNIQUES
from cudal1_core.playbook.writing import answer

MOST_TOGETHER = 4
SLOWER = 0.97  # a technique measured below this alone is not combined
_STAGES = ("algebra", "spelling", "layout", "memory", "wrap")

Combination = frozenset[str]


@dataclass(frozen=True, slots=True)
class Made:
    """A candidate that passed its rehearsal."""

    source: str
    written: Written


class Search:
    """Knows one reference; drafts are made once and kept."""

    def __init__(self, subject: Subject, techniques: Sequence[Technique] = TECHNIQUES) -> None:
        self.subject = subject
        self.techniques = {t.name: t for t in techniques}
        self.made: dict[Combination, Made | None] = {}

    def next(self, tried: Sequence[Tried], n: int, seed: int) -> Iterator[Written]:
        """At most n candidates not tried before, most promising first."""
        seen = {t.source_hash for t in tried}
        for combination in self._order(tried, seed):
            if n <= 0:
                return
            made = self.make(combination)
            if made is None or source_hash(made.source) in seen:
                continue
            seen.add(source_hash(made.source))
            n -= 1
            yield made.written

    def _order(self, tried: Sequence[Tried], seed: int) -> list[Combination]:
        alone = [name for name in self.techniques if self.make(frozenset({name})) is not None]
        results = {frozenset(t.techniques): t for t in tried}
        useful = [name for name in alone if self._useful(results.get(frozenset({name})))]
        fed = [frozenset(t.techniques) for t in tried if t.fed]
        dice = random.Random(f"{seed}:{self.subject.source}")
        ranked = []
        for count in range(1, MOST_TOGETHER + 1):
            for names in combinations(useful, count):
                chosen = frozenset(names)
                if any(pair <= chosen for pair in APART):
                    continue
                from_fed = any(base < chosen for base in fed)
                first = count if from_fed else 10 if count == 1 else 11
                ranked.append((first, -round(self._hope(chosen, results), 3), dice.random(), chosen))
        return [item[-1] for item in sorted(ranked, key=lambda item: item[:3])]

    def _useful(self, result: Tried | None) -> bool:
        if result is None or result.fed:
            return True
        return result.accepted and (result.speedup is None or result.speedup >= SLOWER)

    def _hope(self, chosen: Combination, results: dict[Combination, Tried]) -> float:
        """Expected logarithm of the speedup: the best measured part, and what the others promise on top."""
        total = 0.0
        rest = set(chosen)
        parts = sorted((base for base in results if base <= chosen), key=len, reverse=True)
        for base in parts:
            speedup = results[base].speedup
            if base <= rest and results[base].accepted and speedup:
                total += math.log(speedup)
                rest -= base
        return total + sum(self.techniques[name].promise / 400 for name in rest)

    def make(self, combination: Combination) -> Made | None:
        """None where a technique finds nothing or the result would not fit the reference."""
        if combination not in self.made:
            self.made[combination] = self._draft(combination)
        return self.made[combination]

    def _draft(self, combination: Combination) -> Made | None:
        chosen = sorted(
            (self.techniques[name] for name in combination),
            key=lambda t: (_STAGES.index(t.stage), list(self.techniques).index(t.name)),
        )
        draft = Draft.of(self.subject)
        findings: list[Finding] = []
        for technique in chosen:
            found = technique.apply(draft)
            if found is None:
                return None
            findings.append(found)
        try:
            source = draft.source()
        except (Unprintable, SyntaxError):
            return None
        if not fits(self.subject, source):
            return None
        names = tuple(t.name for t in chosen)
        return Made(source, Written(answer(findings, source), " + ".join(names), names))
