"""The search tries single techniques first, combines what was faster, and never repeats itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cudal1_core.candidate import source_hash
from cudal1_core.playbook.messages import Tried, Written
from cudal1_core.playbook.search import Search

from tests.policies.playbook_cases import forward_only, search_for

if TYPE_CHECKING:
    from pathlib import Path

FORWARD = "y = self.conv(x) * 0.5; y = y * torch.sigmoid(y); y = y + 1; return torch.clamp(y * 2, -1.0, 1.0)"


@pytest.fixture
def search(tmp_path: Path) -> Search:
    init = "self.conv = nn.Conv2d(3, 4, 3, padding=1)"
    return search_for(tmp_path, forward_only(FORWARD, "torch.randn(2, 3, 64, 64)", init))


def code(written: Written) -> str:
    return written.text.split("```python\n")[1].split("```")[0]


def tried(written: Written, speedup: float | None, fed: bool = False) -> Tried:
    return Tried(source_hash(code(written)), written.techniques, speedup is not None, speedup, fed)


def test_single_techniques_come_first(search: Search) -> None:
    first = list(search.next((), 4, seed=0))
    assert [len(w.techniques) for w in first] == [1, 1, 1, 1]
    assert first[0].techniques == ("library operations",)


def test_every_candidate_has_its_three_sections_and_one_fence(search: Search) -> None:
    for written in search.next((), 20, seed=0):
        heads = [line for line in written.text.splitlines() if line.startswith("## ")]
        assert heads == ["## Performance Analysis", "## Algorithm Design", "## Code Implementation"]
        assert written.text.count("```") == 2
        assert "class ModelNew(nn.Module):" in code(written)


def test_the_same_seed_gives_the_same_candidates(search: Search) -> None:
    again = Search(search.subject)
    assert list(search.next((), 12, seed=7)) == list(again.next((), 12, seed=7))


def test_sources_are_never_repeated_and_in_the_end_nothing_is_left(search: Search) -> None:
    history: list[Tried] = []
    hashes: list[str] = []
    for seed in range(40):
        made = list(search.next(history, 6, seed))
        if not made:
            break
        assert len(made) <= 6
        hashes += [source_hash(code(w)) for w in made]
        history += [tried(w, 1.2) for w in made]
    assert len(hashes) == len(set(hashes))
    assert list(search.next(history, 6, seed=0)) == []
    assert len(hashes) > 6


def test_winners_are_combined_and_losers_are_not(search: Search) -> None:
    singles = list(search.next((), 20, seed=0))
    singles = [w for w in singles if len(w.techniques) == 1]
    speeds = {"folded layers": 2.0, "operation fusion": 1.5}
    history = [tried(w, speeds.get(w.techniques[0], 0.8)) for w in singles]
    after = list(search.next(history, 10, seed=0))
    assert [set(w.techniques) for w in after] == [{"folded layers", "operation fusion"}]


def test_a_rejected_technique_is_not_combined(search: Search) -> None:
    singles = [w for w in search.next((), 20, seed=0) if len(w.techniques) == 1]
    history = [tried(w, None if w.techniques == ("memory layout",) else 1.3) for w in singles]
    after = list(search.next(history, 30, seed=0))
    assert after
    assert all("memory layout" not in w.techniques for w in after)


def test_what_was_fed_is_combined_first(search: Search) -> None:
    singles = [w for w in search.next((), 20, seed=0) if len(w.techniques) == 1]
    history = [
        tried(w, 1.0 if w.techniques == ("in-place memory",) else 1.5, w.techniques == ("in-place memory",))
        for w in singles
    ]
    after = list(search.next(history, 1, seed=0))
    assert "in-place memory" in after[0].techniques
    assert len(after[0].techniques) == 2
