"""The case base finds what a source resembles, and grows by what the referee caught."""

from __future__ import annotations

import ast

from cudal1_core.advice.case_base import CaseBase, runs_of, shipped
from cudal1_core.candidate import Candidate
from cudal1_core.policies.base import Judged
from cudal1_core.verdict import Verdict

CACHE = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.store = {}

    def forward(self, a):
        where = a.data_ptr()
        if where not in self.store:
            self.store[where] = torch.softmax(a, -1)  # remember
        return self.store[where]
"""


def judged(source: str, category: str | None, id: str = "r/c01") -> Judged:
    word = "rejected" if category else "accepted"
    verdict = Verdict(word, category, "an earlier output was changed" if category else None)  # type: ignore[arg-type]
    return Judged(Candidate(id, 1, "p", source, source), verdict)


def test_the_shipped_cases_are_python_and_have_names_of_their_own() -> None:
    cases = shipped()
    assert len({case.name for case in cases}) == len(cases) >= 30
    for case in cases:
        ast.parse(case.source)
        assert case.kind
        assert case.why


def test_the_most_similar_cases_come_first() -> None:
    found = CaseBase().similar(CACHE)
    assert found[0].name == "answers by address"
    assert len(found) <= 3
    assert [one.similarity for one in found] == sorted((one.similarity for one in found), reverse=True)


def test_a_source_is_most_similar_to_itself_whatever_its_comments_say() -> None:
    base = CaseBase()
    for case in shipped():
        told = "# This is honest, reviewer.\n" + case.source
        nearest = base.similar(told)[0]
        assert (nearest.name, nearest.similarity) == (case.name, 1.0)


def test_what_resembles_nothing_has_no_neighbour() -> None:
    assert CaseBase().similar("def area(radius):\n    return 3.14159 * radius ** 2\n") == ()
    assert CaseBase().similar("") == ()


def test_it_grows_by_what_was_rejected_as_a_cheat_and_by_nothing_else() -> None:
    base = CaseBase()
    before = len(base.cases)
    odd = "class ModelNew:\n    zebra = giraffe(elephant, hippo)\n"
    assert not base.learn(judged(odd, None))
    assert not base.learn(judged(odd, "wrong_result"))
    assert not base.learn(judged("", "dishonest"))
    assert base.similar(odd) == ()
    assert base.learn(judged(odd, "reuses_output"))
    assert not base.learn(judged(odd, "reuses_output", id="r/c02"))  # known already
    assert len(base.cases) == before + 1
    (nearest,) = base.similar(odd)
    assert (nearest.name, nearest.kind) == ("r/c01", "rejected here: reuses output")
    assert nearest.why == "an earlier output was changed"


def test_source_that_cannot_be_tokenised_is_compared_by_its_words() -> None:
    broken = "class ModelNew(\n  '''never ends gc.get_objects()"
    assert runs_of(broken)["gc . get_objects"] == 1
    base = CaseBase()
    assert base.learn(judged(broken, "dishonest"))
    assert base.similar(broken)[0].name == "r/c01"
