"""Events become the view; nothing here needs a screen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cudal1_core.events import (
    CandidateWritten,
    DecisionMade,
    Event,
    PairsMeasured,
    RoundStarted,
    StageStarted,
    TokenArrived,
    TroubleMet,
    VerdictReached,
)

from cudal1_tui import state
from cudal1_tui import view as views
from cudal1_tui.view import SETTLE_S, View
from cudal1_tui.words import state_of
from tests.tui import recorded


def view_of(events: list[Event], view: View | None = None, now: float = 0.0) -> View:
    view = view or View()
    for event in events:
        view = state.reduce(view, event, now)
    return view


def test_every_kind_of_candidate_has_its_word() -> None:
    view = view_of(recorded.middle("/x/softmax.py"))
    assert {row.id: state_of(row, view.best) for row in view.rows} == {
        "c01": ("✓", "accepted"),
        "c02": ("✓", "accepted"),
        "c03": ("●", "accepted"),
        "c04": ("✗", "build failed"),
        "c05": ("✗", "wrong result"),
        "c06": ("✗", "timed out"),
        "c07": ("!", "dishonest"),
        "c08": ("▸", "timing"),
        "c09": ("·", "queued"),
        "c10": ("▸", "writing"),
    }


def test_facts_of_the_run_are_kept() -> None:
    view = view_of([*recorded.middle("/x/softmax.py"), *recorded.rest()])
    assert (view.reference, view.policy, view.round, view.rounds) == ("/x/softmax.py", "playbook", 2, 3)
    assert view.baselines == {"eager": 0.412, "compile": 0.298}
    assert view.task == recorded.task("/x/softmax.py")
    assert (view.ending, view.running) == ("done", False)


def test_text_grows_until_the_candidate_is_written() -> None:
    view = view_of([TokenArrived(candidate="c01", text="import "), TokenArrived(candidate="c01", text="torch")])
    row = view.rows[0]
    assert (row.activity, row.source) == ("writing", "import torch")
    written = recorded.candidate("c01", 1, "title")
    row = view_of([CandidateWritten(candidate=written)], view).rows[0]
    assert (row.activity, row.source, row.text) == ("queued", recorded.FAST, written.text)


def test_a_stage_told_before_the_text_is_complete_is_not_lost() -> None:
    view = view_of([StageStarted(candidate="c01", stage="building")])
    view = view_of([CandidateWritten(candidate=recorded.candidate("c01", 1, ""))], view)
    assert view.rows[0].activity == "building"


def test_timing_keeps_every_block() -> None:
    row = view_of(recorded.middle("/x")).row("c08")
    assert row is not None
    assert len(row.ratios) == row.blocks == 9
    assert row.interval == (1.983, 2.117)


def test_the_best_is_the_fastest_drop_in_that_was_not_dismissed() -> None:
    view = view_of([*recorded.middle("/x"), *recorded.rest()])
    assert view.best == "c03"  # c10 is faster, but not drop-in
    view = view_of([DecisionMade(candidate="c03", decision="dismissed")], view)
    assert view.best == "c08"
    view = view_of([DecisionMade(candidate="c03", decision="none")], view)
    assert view.best == "c03"


def test_a_decision_on_an_unknown_candidate_changes_nothing() -> None:
    view = view_of(recorded.middle("/x"))
    assert view_of([DecisionMade(candidate="c99", decision="kept")], view) == view


def test_the_selection_follows_the_newest_until_the_person_moves() -> None:
    view = view_of([*recorded.opening("/x"), *recorded.first_round()])
    assert view.selected == "c05"
    view = views.move(view, "up")
    assert (view.selected, view.following) == ("c04", False)
    view = view_of(recorded.second_round(), view)
    assert view.selected == "c04"
    view = views.move(view, "newest")
    assert (view.selected, view.following) == ("c10", True)
    assert view_of([TokenArrived(candidate="c11", text="x")], view).selected == "c11"


def test_the_selection_stays_at_both_ends() -> None:
    view = views.move(view_of(recorded.middle("/x")), "top")
    assert views.move(view, "up").selected == "c01"
    assert views.move(views.move(view, "newest"), "down").selected == "c10"
    assert views.move(View(), "down") == View()


def test_a_row_that_came_under_the_cursor_takes_no_decision_at_once() -> None:
    view = view_of([TokenArrived(candidate="c01", text="x")], now=10.0)
    assert not views.takes_decisions(view, 10.0 + SETTLE_S - 0.01)
    assert views.takes_decisions(view, 10.0 + SETTLE_S)
    moved = views.select(view_of([TokenArrived(candidate="c02", text="x")], view, now=20.0), "c01")
    assert views.takes_decisions(moved, 20.0)
    assert not views.takes_decisions(View(), 20.0)


def test_news_of_the_selected_row_does_not_block_decisions() -> None:
    view = view_of([TokenArrived(candidate="c01", text="x")], now=10.0)
    told = VerdictReached(candidate="c01", verdict=recorded.accepted(2.0, 0.1), seconds=1.0)
    assert views.takes_decisions(view_of([told], view, now=10.5), 10.5)


def test_a_run_that_goes_on_is_running_again() -> None:
    view = view_of([*recorded.middle("/x"), *recorded.rest()])
    view = view_of([RoundStarted(round=4, exemplars=())], view)
    assert (view.running, view.round, view.rounds) == (True, 4, 4)


def test_trouble_stays_until_it_is_put_away() -> None:
    trouble = TroubleMet(title="The disk is full")
    view = view_of([trouble, *recorded.opening("/x")])
    assert view.trouble is trouble
    assert views.calm(view) == replace(view, trouble=None)


def test_waiting_for_the_person_is_no_time_spent() -> None:
    view = view_of([*recorded.middle("/x"), *recorded.rest()])
    assert view.started_at is not None
    assert view.finished_at == view.started_at + 100
    later = view_of([RoundStarted(at=recorded.START + 1100, round=3, exemplars=())], view)
    assert later.started_at == view.started_at + 1000


def test_the_clock_before_and_after_timing_is_the_gpus_or_the_processors() -> None:
    def mhz(before: dict[str, Any], after: dict[str, Any]) -> tuple[int, int] | None:
        event = PairsMeasured(candidate="c01", samples={}, seeds={}, before=before, after=after)
        return view_of([event]).rows[0].mhz

    assert mhz({"cpu_mhz": 2600, "gpu": {"sm_mhz": 1980}}, {"cpu_mhz": 2600, "gpu": {"sm_mhz": 1965}}) == (1980, 1965)
    assert mhz({"cpu_mhz": 2600}, {"cpu_mhz": 2596}) == (2600, 2596)
    assert mhz({"cpu_mhz": 2600}, {}) is None
