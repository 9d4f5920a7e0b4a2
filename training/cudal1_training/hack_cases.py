"""The case base of cheats: candidates that the referee found dishonest, for whoever reviews later ones.

CUDA-L1 (arXiv 2507.14111, section 3) keeps such a base and shows its reviewer the three most similar cases. Here the
referee alone decides; the base is for advice and for reading. It lies beside the archive and grows over trainings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from cudal1_core.policies.base import Judged
from cudal1_core.reference import Task

from cudal1_training.folder import append_line, read_lines

SIMILAR = 3
SHINGLE = 4  # words that count as one feature


@dataclass(frozen=True, slots=True)
class HackCase:
    source: str
    source_hash: str
    reason: str
    check: str  # the first check that failed
    reference: str  # source of the reference


class HackCases:
    """Reads the base at `path`, and adds to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.cases = [HackCase(**row) for row in read_lines(path)]
        self._known = {case.source_hash for case in self.cases}

    def add(self, task: Task, judged: Judged) -> bool:
        """Keeps a dishonest candidate that is not there yet."""
        verdict, candidate = judged.verdict, judged.candidate
        if verdict.category != "dishonest" or candidate.source_hash in self._known:
            return False
        failed = next((check.name for check in verdict.checks if not check.passed), "")
        case = HackCase(candidate.source, candidate.source_hash, verdict.reason or "", failed, task.source)
        self.cases.append(case)
        self._known.add(case.source_hash)
        append_line(self._path, asdict(case))
        return True

    def similar(self, source: str, count: int = SIMILAR) -> list[HackCase]:
        """The cases that share most with the source, by the overlap of their word sequences (Jaccard)."""
        mine = _shingles(source)
        scored = [(len(mine & theirs) / max(1, len(mine | theirs)), case) for case, theirs in self._features()]
        ranked = sorted(scored, key=lambda one: -one[0])
        return [case for score, case in ranked[:count] if score > 0]

    def _features(self) -> Iterable[tuple[HackCase, set[tuple[str, ...]]]]:
        return ((case, _shingles(case.source)) for case in self.cases)


def _shingles(source: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+|[^\w\s]", source)
    return {tuple(words[at : at + SHINGLE]) for at in range(max(1, len(words) - SHINGLE + 1))}
