"""Exemplar choice keeps the paper's formula and the person's decisions."""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations

import pytest
from cudal1_core.candidate import Candidate
from cudal1_core.exemplars import ExemplarOptions, buckets, choose, probabilities
from cudal1_core.policies.base import Judged
from cudal1_core.verdict import Verdict


def judged(id: str, speedup: float | None, *labels: str, fed: bool = False, word: str = "accepted") -> Judged:
    source = f"class ModelNew: name = {id!r}"
    candidate = Candidate(id=id, round=1, policy="replay", source=source, text=source)
    return Judged(candidate, Verdict(word, speedup=speedup, labels=labels), fed=fed)  # type: ignore[arg-type]


def ids(chosen: tuple[Judged, ...]) -> list[str]:
    return [one.candidate.id for one in chosen]


def test_buckets_are_closed_below_and_open_above() -> None:
    pool = [judged("a", 1.0), judged("b", 1.24), judged("c", 1.25), judged("d", 0.99), judged("e", 3.0)]
    assert [[one.candidate.id for one in bucket] for bucket in buckets(pool, 0.25)] == [
        ["d"],
        ["a", "b"],
        ["c"],
        ["e"],
    ]


def test_probabilities_are_equation_1() -> None:
    means, temperature = [1.0, 1.5, 3.0], 0.7
    centre = sum(means) / 3
    weights = [math.exp((mean - centre) / temperature) for mean in means]
    expected = [weight / sum(weights) for weight in weights]
    assert probabilities(means, temperature) == pytest.approx(expected)


def test_probabilities_survive_huge_speedups_and_tiny_temperatures() -> None:
    assert probabilities([1.0, 5000.0], 0.01) == pytest.approx([0.0, 1.0])
    assert sum(probabilities([0.001, 1.0, 449.0], 1e-6)) == pytest.approx(1.0)


def test_draws_follow_the_formula_over_distinct_buckets() -> None:
    pool = [judged("slow", 1.0), judged("mid1", 1.5), judged("mid2", 1.6), judged("fast", 2.0)]
    options = ExemplarOptions(width=0.25, temperature=0.5)
    draws = 4000
    seen = Counter(tuple(ids(choose(pool, options, seed))) for seed in range(draws))
    expected: Counter[tuple[str, ...]] = Counter()
    speeds = {"slow": 1.0, "mid": 1.55, "fast": 2.0}
    for first, second in permutations(speeds, 2):
        p = dict(zip(speeds, probabilities(list(speeds.values()), 0.5), strict=True))
        chance = p[first] * p[second] / (1 - p[first])
        for a in ("mid1", "mid2") if first == "mid" else (first,):
            for b in ("mid1", "mid2") if second == "mid" else (second,):
                pair = tuple(sorted((a, b), key=["slow", "mid1", "mid2", "fast"].index))
                expected[pair] += chance / 2 if "mid" in (first, second) else chance  # type: ignore[assignment]
    assert set(seen) == set(expected)
    for pair, chance in expected.items():
        spread = math.sqrt(chance * (1 - chance) / draws)
        assert seen[pair] / draws == pytest.approx(chance, abs=4.5 * spread)


def test_the_same_seed_chooses_the_same_and_another_may_not() -> None:
    pool = [judged(f"c{n}", 1 + n / 3) for n in range(9)]
    options = ExemplarOptions()
    assert ids(choose(pool, options, 7)) == ids(choose(pool, options, 7))
    assert len({tuple(ids(choose(pool, options, seed))) for seed in range(50)}) > 1


@pytest.mark.parametrize("how", ["bucket", "random"])
def test_what_may_never_be_shown(how: str) -> None:
    pool = [
        judged("rejected", 5.0, word="rejected"),
        judged("other-weights", 5.0, "not_drop_in"),
        judged("untimed", None),
        judged("dismissed", 5.0),
        judged("dismissed-after-fed", 5.0, fed=True),
        judged("other-weights-fed", 5.0, "not_drop_in", fed=True),
        judged("good", 1.1),
    ]
    options = ExemplarOptions(how=how)  # type: ignore[arg-type]
    for seed in range(20):
        assert ids(choose(pool, options, seed, {"dismissed", "dismissed-after-fed"})) == ["good"]


def test_fed_candidates_always_enter_and_others_fill_up() -> None:
    pool = [judged("fed", 0.5, fed=True), judged("a", 2.0), judged("b", 9.0)]
    for seed in range(20):
        chosen = ids(choose(pool, ExemplarOptions(), seed))
        assert len(chosen) == 2
        assert chosen[0] == "fed"


def test_all_fed_candidates_enter_even_beyond_the_count() -> None:
    pool = [judged(f"c{n}", 1.0 + n, fed=True) for n in range(4)]
    assert ids(choose(pool, ExemplarOptions(), 0)) == ["c0", "c1", "c2", "c3"]


def test_one_code_is_shown_once_however_often_it_was_written() -> None:
    twin = judged("a", 1.5)
    pool = [twin, Judged(twin.candidate, twin.verdict), judged("b", 3.0)]
    assert ids(choose(pool, ExemplarOptions(count=3), 0)) == ["a", "b"]


def test_none_shows_nothing_and_an_empty_pool_is_no_error() -> None:
    assert choose([judged("a", 2.0, fed=True)], ExemplarOptions(how="none"), 0) == ()
    assert choose([], ExemplarOptions(), 0) == ()
