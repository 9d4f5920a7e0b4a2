"""The case base of cheats: examples that come with the program, and what the referee caught here.

CUDA-L1 (arXiv 2507.14111, section 3) grows such a base and shows its reviewer the three cases most similar to what is
reviewed. Similarity is the cosine of tf-idf weights (Salton and Buckley 1988) over runs of one to three tokens: what
all code shares weighs nothing, a rare run such as `sys . modules` weighs much. Comments are no tokens.
"""

from __future__ import annotations

import io
import math
import re
import tokenize
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from cudal1_core.advice.advice import Similar
from cudal1_core.candidate import source_hash

if TYPE_CHECKING:
    from cudal1_core.policies.base import Judged

SHOWN = 3  # cases, as in the paper
LONGEST_RUN = 3  # tokens
LEAST = 0.2  # similarity below which two sources only share that they are code
LONGEST = 20_000  # tokens of a source that are read

# Rejected for these, code is a cheat or does what cheats do; other rejected code is only wrong.
CHEATS = frozenset({"dishonest", "reuses_output", "changes_inputs", "weights_baked_in", "reduced_precision"})
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    kind: str  # in words
    why: str  # what makes it a cheat
    source: str


class CaseBase:
    """Grows by `learn`; the same source enters once."""

    def __init__(self) -> None:
        self.cases: list[Case] = []
        self._runs: list[Counter[str]] = []
        self._spread: Counter[str] = Counter()  # cases that have a run
        self._known: set[str] = set()
        for case in shipped():
            self._add(case)

    def learn(self, judged: Judged) -> bool:
        """Adds a candidate that was rejected as a cheat; False where it was not, or is there already."""
        verdict, candidate = judged.verdict, judged.candidate
        if verdict.verdict != "rejected" or verdict.category not in CHEATS or not candidate.source:
            return False
        kind = f"rejected here: {verdict.category.replace('_', ' ')}"
        return self._add(Case(candidate.id, kind, verdict.reason or "", candidate.source))

    def similar(self, source: str, count: int = SHOWN, least: float = LEAST) -> tuple[Similar, ...]:
        """The most similar cases first."""
        mine = self._weights(runs_of(source))
        scored = [(_cosine(mine, self._weights(runs)), case) for runs, case in zip(self._runs, self.cases, strict=True)]
        ranked = sorted((one for one in scored if one[0] >= least), key=lambda one: -one[0])
        return tuple(Similar(case.name, case.kind, case.why, round(score, 2)) for score, case in ranked[:count])

    def case(self, name: str) -> Case:
        """Raises StopIteration for a name that is not there."""
        return next(case for case in self.cases if case.name == name)

    def _add(self, case: Case) -> bool:
        hashed = source_hash(case.source)
        if hashed in self._known:
            return False
        self._known.add(hashed)
        self.cases.append(case)
        self._runs.append(runs_of(case.source))
        self._spread.update(self._runs[-1].keys())
        return True

    def _weights(self, runs: Mapping[str, int]) -> dict[str, float]:
        """(1 + log tf) · log((1 + N) / (1 + df)), scaled to length 1."""
        total = 1 + len(self.cases)
        weights = {
            run: (1 + math.log(count)) * math.log(total / (1 + self._spread[run])) for run, count in runs.items()
        }
        length = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
        return {run: weight / length for run, weight in weights.items()}


@lru_cache(maxsize=1)
def shipped() -> tuple[Case, ...]:
    """The examples that come with the program."""
    data = tomllib.loads(Path(__file__).with_name("cases.toml").read_text("utf-8"))
    return tuple(Case(one["name"], one["kind"], one["why"], one["source"]) for one in data["case"])


def runs_of(source: str) -> Counter[str]:
    """How often each run of one to three tokens occurs."""
    tokens = _tokens(source)[:LONGEST]
    return Counter(
        " ".join(tokens[at : at + length])
        for length in range(1, LONGEST_RUN + 1)
        for at in range(len(tokens) - length + 1)
    )


def _tokens(source: str) -> list[str]:
    """Python's tokens without comments; strings fall apart into words, since they may hold kernels."""
    found: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type in (tokenize.NAME, tokenize.NUMBER, tokenize.OP):
                found.append(token.string)
            elif token.type not in _LAYOUT:
                found += _WORD.findall(token.string)
    except (tokenize.TokenError, SyntaxError, ValueError):
        return _WORD.findall(source)
    return found


_LAYOUT = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)


def _cosine(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    return sum(weight * other.get(run, 0.0) for run, weight in one.items())
