"""Exemplar choice keeps the paper's formula and the person's decisions."""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations

import pytest
from cudal1_core.candidate import Candidate
from cudal1_core.exemplars import CHOICES, ExemplarOptions, buckets, choose, eligible, islands, probabilities
from cudal1_core.policies.base import Judged
from cudal1_core.verdict import Verdict
from hypothesis import given
from hypothesis import strategies as st


def judged(
    id: str,
    speedup: float | None,
    *labels: str,
    fed: bool = False,
    word: str = "accepted",
    shown: tuple[str, ...] = (),
) -> Judged:
    source = f"class ModelNew: name = {id!r}"
    candidate = Candidate(id=id, round=1, policy="replay", source=source, text=source, exemplars=shown)
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


@pytest.mark.parametrize("how", ["bucket", "island", "random"])
def test_what_may_never_be_shown(how: str) -> None:
    pool = [
        judged("rejected", 5.0, word="rejected"),
        judged("other-weights", 5.0, "not_drop_in"),
        judged("untimed", None),
        judged("dismissed", 5.0),
        judged("dismissed-after-fed", 5.0, fed=True),
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


@pytest.mark.parametrize("how", CHOICES)
def test_what_the_person_feeds_enters_whatever_was_found_of_it(how: str) -> None:
    pool = [
        judged("wrong", 9.0, fed=True, word="rejected"),
        judged("other-weights", 9.0, "not_drop_in", fed=True),
        judged("slow", 0.5, fed=True),
    ]
    assert ids(choose(pool, ExemplarOptions(how=how), 0)) == ["wrong", "other-weights", "slow"]  # type: ignore[arg-type]
    assert [eligible(one) for one in pool] == [False, False, True]


@pytest.mark.parametrize("how", CHOICES)
def test_no_earlier_candidate_is_no_error_and_one_is_shown_once(how: str) -> None:
    options = ExemplarOptions(how=how)  # type: ignore[arg-type]
    assert choose([], options, 0) == ()
    assert ids(choose([judged("a", 2.0)], options, 0)) == ([] if how == "none" else ["a"])


def test_random_draws_every_pair_alike() -> None:
    pool = [judged(f"c{n}", 1.0 + n) for n in range(4)]
    draws = 3000
    seen = Counter(tuple(ids(choose(pool, ExemplarOptions(how="random"), seed))) for seed in range(draws))
    assert len(seen) == 6
    spread = math.sqrt(1 / 6 * 5 / 6 / draws)
    assert all(count / draws == pytest.approx(1 / 6, abs=4.5 * spread) for count in seen.values())


def test_a_candidate_lives_on_the_island_of_what_its_prompt_showed() -> None:
    pool = [
        judged("c01", 1.0),
        judged("c02", 1.0, shown=("c01",)),
        judged("c03", 1.0, shown=("c02", "c01")),
        judged("old/c01", 1.0),
        judged("old/c02", 1.0, shown=("c01",)),
        judged("ring1", 1.0, shown=("ring2",)),
        judged("ring2", 1.0, shown=("ring1",)),
    ]
    home = islands(pool, 1000)
    assert home["c01"] == home["c02"] == home["c03"]
    assert home["old/c01"] == home["old/c02"] != home["c01"]


def test_islands_are_drawn_alike_and_give_all_exemplars_as_far_as_they_can() -> None:
    roots = [judged(f"root{n}", 1.0 + n) for n in range(3)]
    pool = [*roots, *(judged(f"leaf{n}", 3.0 + n, shown=(f"root{n}",)) for n in range(3))]
    options = ExemplarOptions(how="island", islands=1000)
    draws = 1500
    seen = Counter(tuple(ids(choose(pool, options, seed))) for seed in range(draws))
    assert set(seen) == {(f"root{n}", f"leaf{n}") for n in range(3)}
    spread = math.sqrt(1 / 3 * 2 / 3 / draws)
    assert all(count / draws == pytest.approx(1 / 3, abs=4.5 * spread) for count in seen.values())
    alone = choose(roots, options, 0)
    assert len(alone) == 2
    assert "root2" in ids(alone)


candidates = st.builds(
    judged,
    st.sampled_from([f"c{n}" for n in range(12)]),
    st.one_of(st.none(), st.floats(0.01, 500)),
    fed=st.booleans(),
    word=st.sampled_from(["accepted", "rejected", "unjudgeable"]),
)


@given(
    st.lists(candidates, max_size=12, unique_by=lambda one: one.candidate.id),
    st.sampled_from(CHOICES),
    st.integers(0, 5),
    st.integers(),
    st.sets(st.sampled_from([f"c{n}" for n in range(12)])),
)
def test_every_choice_keeps_the_persons_word(
    pool: list[Judged], how: str, count: int, seed: int, dismissed: set[str]
) -> None:
    options = ExemplarOptions(how=how, count=count)  # type: ignore[arg-type]
    chosen = choose(pool, options, seed, dismissed)
    assert chosen == choose(pool, options, seed, dismissed)
    fed = {one.candidate.id for one in pool if one.fed} - dismissed
    assert fed <= set(ids(chosen))
    assert not dismissed & set(ids(chosen))
    assert all(one.fed or eligible(one) for one in chosen)
    assert len({one.candidate.source_hash for one in chosen}) == len(chosen) <= max(count, len(fed))


@given(st.lists(st.floats(0.1, 50), min_size=2, max_size=8), st.floats(0.05, 5), st.integers())
def test_bucket_exemplars_come_from_distinct_buckets(speeds: list[float], width: float, seed: int) -> None:
    pool = [judged(f"c{n}", speed) for n, speed in enumerate(speeds)]
    chosen = choose(pool, ExemplarOptions(width=width, count=3), seed)
    assert len(chosen) == min(3, len(buckets(pool, width)))
    assert len(buckets(chosen, width)) == len(chosen)


def test_none_shows_nothing_that_the_person_did_not_feed() -> None:
    pool = [judged("a", 2.0, fed=True), judged("b", 3.0)]
    assert ids(choose(pool, ExemplarOptions(how="none"), 0)) == ["a"]
