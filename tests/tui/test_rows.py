"""The list of candidates: what it holds, and what it shares with the one it came from."""

from __future__ import annotations

from dataclasses import replace

from cudal1_tui.rows import SIZE, Rows
from cudal1_tui.view import Row
from tests.tui import recorded


def many(count: int) -> Rows:
    return Rows(Row(f"c{number}", 1) for number in range(count))


def judged(id: str, speedup: float) -> Row:
    return replace(Row(id, 1), verdict=recorded.accepted(speedup, 0.1), speedup=speedup)


def test_a_row_takes_the_place_of_its_id_or_the_end() -> None:
    before = many(SIZE + 3)
    after = before.put(replace(before[SIZE], text="x")).put(Row("new", 2))
    assert len(before) == SIZE + 3
    assert before[SIZE].text == ""
    assert [row.id for row in after] == [*(row.id for row in before), "new"]
    assert after[SIZE].text == "x"
    assert after.find("new") == after[-1] == Row("new", 2)
    assert before.find("new") is before.find(None) is None
    assert after[1:3] == tuple(after)[1:3]


def test_two_successors_of_one_list_do_not_see_each_other() -> None:
    before = many(2)
    one, two = before.put(Row("a", 1)), before.put(Row("b", 1))
    assert [row.id for row in one] == ["c0", "c1", "a"]
    assert [row.id for row in two] == ["c0", "c1", "b"]
    assert one.find("b") is two.find("a") is None
    assert two.put(Row("a", 1)).place("a") == 3


def test_the_fastest_is_the_earlier_of_two_and_never_a_dismissed_one() -> None:
    rows = many(SIZE * 2).put(judged("c3", 2.0)).put(judged(f"c{SIZE + 1}", 2.0)).put(judged("c5", 1.5))
    assert rows.fastest is rows.find("c3")
    assert len(rows.unjudged) == SIZE * 2 - 3
    dismissed = rows.put(replace(rows[3], decision="dismissed"))
    assert dismissed.fastest is rows.find(f"c{SIZE + 1}")
    assert Rows().fastest is None


def test_only_what_changed_is_told() -> None:
    before = many(SIZE * 3)
    after = before.put(replace(before[SIZE + 5], text="x")).put(Row("new", 1))
    assert [(place, old, row.id) for place, old, row in after.changed_since(before)] == [
        (SIZE + 5, before[SIZE + 5], f"c{SIZE + 5}"),
        (SIZE * 3, None, "new"),
    ]
    assert list(after.changed_since(after)) == []
    assert len(list(many(2).changed_since(before))) == 2
