"""Every key does what it says, in a small and in a large terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cudal1_core.errors import UsageError
from cudal1_core.events import PolicyLoading, RoundStarted, RunFinished, StageStarted, TokenArrived, TroubleMet

from cudal1_tui.screens.help import HelpScreen
from cudal1_tui.screens.questions import Question
from cudal1_tui.screens.workbench import ZOOM
from cudal1_tui.widgets.code_stream import CodeStream
from tests.tui import recorded

if TYPE_CHECKING:
    from tests.tui.conftest import Opened

Size = tuple[int, int]


async def test_the_reference_is_there_before_the_run_has_told_anything(opened: Opened) -> None:
    async with opened((160, 50)) as desk:
        assert "starting" in desk.seen
        assert "class Model(nn.Module):" in desk.seen
        assert "No candidate yet." in desk.seen


async def test_the_screen_answers_the_questions_of_a_run(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        for part in ("running", "round 2/3", "● c03 2.31x", "NVIDIA H200", "00:01:25", "eager 0.412 ms"):
            assert part in desk.seen


async def test_each_candidate_is_a_row_with_its_state_and_numbers(opened: Opened) -> None:
    async with opened((160, 50)) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        rows = [line[2:72].split() for line in desk.seen.splitlines() if " c0" in line[:8] or " c10" in line[:8]]
        assert rows[2][:6] == ["●", "c03", "accepted", "7/7", "2.31x", "[2.28–2.34]"]
        assert rows[4][:6] == ["✗", "c05", "wrong", "result", "3/4", "–"]
        assert [row[1] for row in rows] == [f"c{n:02d}" for n in range(1, 11)]


async def test_a_faster_candidate_that_is_not_drop_in_says_why_it_is_not_the_best(opened: Opened) -> None:
    async with opened() as desk:
        await desk.tell([*recorded.middle(str(desk.reference)), *recorded.rest()])
        row = next(line for line in desk.seen.splitlines() if "c10 accepted" in line)
        assert "✓ c10" in row
        assert "! not drop-in" in row


async def test_a_accepts_and_writes_beside_the_reference(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press("b", "a")
        assert desk.run.asked == [("c03", "kept", desk.accepted_file)]
        assert recorded.FAST in desk.accepted_file.read_text()
        assert "kept" in desk.seen
        assert "softmax_optimized.py" in desk.said[-1]


@pytest.mark.parametrize(("candidate", "why"), [("c05", "wrong result"), ("c08", "not been judged")])
async def test_only_accepted_candidates_can_be_accepted(opened: Opened, candidate: str, why: str) -> None:
    async with opened() as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.select(candidate)
        await desk.press("a")
        assert desk.run.asked == []
        assert not desk.accepted_file.exists()
        assert why in desk.said[-1]


@pytest.mark.parametrize(
    ("key", "first", "second"),
    [("o", "new", None), ("w", "mine", "new"), ("c", "mine", None), ("escape", "mine", None)],
)
async def test_a_file_that_exists_is_asked_about(
    opened: Opened, size: Size, key: str, first: str, second: str | None
) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        desk.accepted_file.write_text("mine")
        await desk.press("b", "a")
        assert isinstance(desk.app.screen, Question)
        assert "softmax_optimized.py exists" in desk.seen
        await desk.press(key)
        beside = desk.accepted_file.with_name("softmax_optimized_2.py")
        found = {
            path: "mine" if path.read_text() == "mine" else "new"
            for path in (desk.accepted_file, beside)
            if path.exists()
        }
        assert found == {desk.accepted_file: first} | ({beside: second} if second else {})
        assert (desk.run.asked != []) == ("new" in found.values())


async def test_x_stops_a_candidate_that_has_no_verdict(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press("G", "k", "k")
        assert desk.view.selected == "c08"
        assert "timing c08" in desk.seen
        await desk.press("x")
        assert "c08 is stopped and rejected" in desk.said[-1]
        await desk.tell([StageStarted(candidate="c08", stage="stopped")])
        assert "timing c08" not in desk.seen
        assert "· c08 dismissed" in desk.seen


async def test_x_rejects_and_the_best_moves_on(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press("b", "x")
        assert desk.run.asked == [("c03", "dismissed", None)]
        assert desk.view.best == "c01"
        assert "dismissed" in desk.seen


async def test_f_feeds_good_and_bad_candidates_alike(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.select("c05")
        await desk.press("f")
        assert desk.run.asked == [("c05", "fed", None)]
        await desk.select("c10")
        await desk.press("f")
        assert len(desk.run.asked) == 1
        assert "no verdict yet" in desk.said[-1]


async def test_u_takes_back_the_last_decision_and_its_file(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press("b", "f", "a", "u")
        assert not desk.accepted_file.exists()
        assert desk.row("c03").decision == "fed"
        await desk.press("u", "u")
        assert desk.row("c03").decision == "none"
        assert [asked[1] for asked in desk.run.asked] == ["fed", "kept", "fed", "none"]
        assert desk.said[-1] == "Nothing to undo."


async def test_no_key_decides_on_a_row_that_has_just_come_under_the_cursor(opened: Opened) -> None:
    async with opened() as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        desk.run.tell([TokenArrived(candidate="c11", text="import torch")])
        await desk.settle()
        assert desk.view.selected == "c11"
        await desk.press("x")
        assert desk.run.asked == []
        assert "just moved" in desk.said[-1]
        desk.clock.now += 0.3
        await desk.press("x")
        assert desk.run.asked == [("c11", "dismissed", None)]


async def test_space_pauses_and_resumes(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press("space")
        assert "paused" in desk.seen
        assert "space resume" in desk.seen
        await desk.press("space")
        assert "▸ running" in desk.seen
        assert desk.run.asked == [("pause",), ("resume",)]


async def test_j_k_and_arrows_move_and_the_row_stays_selected(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press("k", "up", "j", "down", "k")
        assert desk.view.selected == "c09"
        await desk.tell(recorded.rest())
        assert desk.view.selected == "c09"
        await desk.press("g")
        assert desk.view.selected == "c01"
        await desk.press("G")
        assert (desk.view.selected, desk.view.following) == ("c10", True)


async def test_a_selected_row_is_always_in_sight(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        many = [TokenArrived(candidate=f"k{n:02d}", text="x") for n in range(40)]
        await desk.tell([*recorded.opening(str(desk.reference)), *many])
        for key, row in (("G", "▎▸ k39"), ("g", "▎▸ k00"), ("j", "▎▸ k01")):
            await desk.press(key)
            assert row in desk.seen


async def test_a_click_selects_the_row(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell([*recorded.opening(str(desk.reference)), *recorded.first_round()])
        at = next(n for n, line in enumerate(desk.seen.splitlines()) if "✓ c02" in line)
        await desk.pilot.click(offset=(6, at))
        assert desk.view.selected == "c02"


async def test_d_shows_the_difference_and_goes_back(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press("b", "d")
        assert "--- reference" in desk.seen
        assert "+import triton" in desk.seen
        assert "d code" in desk.seen
        await desk.press("d")
        assert "--- reference" not in desk.seen


async def test_numbers_choose_the_view(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press("b", "3")
        assert "✓ moved pointers" in desk.seen
        assert "1.67x vs compile" in desk.seen or "vs compile 1.67x" in desk.seen
        await desk.press("2")
        assert "@@" in desk.seen
        await desk.press("1")
        assert "import triton" in desk.seen
        assert "@@" not in desk.seen


async def test_failures_show_their_reason(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.select("c05")
        assert "Differs from the float64 truth" in desk.seen
        await desk.press("3")
        shown = desk.seen
        assert shown.index("✗ fresh inputs") < shown.index("✓ builds")


@pytest.mark.parametrize("key", ["z", "enter"])
async def test_a_pane_can_have_the_whole_screen(opened: Opened, size: Size, key: str) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.select("c03")
        code = desk.app.workbench.query_one(CodeStream)
        code.focus()
        await desk.press(key)
        assert code.size.height >= size[1] - 5
        assert "candidates" not in desk.seen
        await desk.press("escape")
        assert not desk.app.workbench.has_class(ZOOM)
        assert "candidates" in desk.seen


async def test_tab_goes_round_the_panes(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        visited = []
        for _ in range(6):
            visited.append(desk.app.focused.id if desk.app.focused else None)
            await desk.press("tab")
        assert visited[0] == "candidates"
        assert "code" in visited


async def test_y_copies_the_code_and_says_where_it_went(
    opened: Opened, size: Size, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press("b", "y")
        assert desk.app.clipboard == recorded.FAST
        assert "OSC 52" in desk.said[-1]


async def test_n_asks_for_one_more_round_once_the_run_is_done(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press("n")
        assert desk.run.asked == []
        await desk.tell(recorded.rest())
        assert "✓ done" in desk.seen
        assert "n one more" in desk.seen
        await desk.press("n")
        assert desk.run.asked == [("extend", 1)]
        await desk.tell([RoundStarted(round=3, exemplars=())])
        assert "▸ running" in desk.seen


async def test_capital_t_trains_the_model_and_says_when(
    opened: Opened, size: Size, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press("T")
        assert desk.run.asked == [("update",)]
        assert "Before the next round" in desk.said[-1]
        await desk.tell(recorded.rest())
        await desk.press("T")
        assert "n samples from it" in desk.said[-1]
        await desk.tell([PolicyLoading(what="updating the model: contrastive GRPO")])
        assert "the policy is updating the model" in desk.seen
        await desk.tell([PolicyLoading(what="")])
        assert "done: 6 of 10 accepted" in desk.seen

        def refuse() -> None:
            raise UsageError("The playbook policy has no model that could be trained")

        monkeypatch.setattr(desk.run, "update", refuse)
        await desk.press("T")
        assert "has no model that could be trained" in desk.said[-1]


async def test_n_takes_up_a_stream_that_had_ended(opened: Opened) -> None:
    async with opened() as desk:
        await desk.tell([*recorded.middle(str(desk.reference)), *recorded.rest()])
        desk.run.end()
        await desk.settle()
        await desk.press("n")
        await desk.tell([RoundStarted(round=3, exemplars=())])
        assert desk.view.round == 3


async def test_help_lists_every_action(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.press("question_mark")
        assert isinstance(desk.app.screen, HelpScreen)
        assert "Take back the last decision" in desk.seen
        await desk.press("escape")
        assert desk.app.screen is desk.app.workbench


@pytest.mark.parametrize("key", ["q", "ctrl+q"])
async def test_quitting_asks_while_work_is_running(opened: Opened, size: Size, key: str) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press(key)
        assert "Work is running" in desk.seen
        await desk.press("s")
        assert desk.app.screen is desk.app.workbench
        await desk.pilot.press(key, "q")
        assert desk.app._exit


async def test_quitting_is_immediate_when_the_run_is_done(opened: Opened) -> None:
    async with opened() as desk:
        await desk.tell([*recorded.middle(str(desk.reference)), *recorded.rest()])
        await desk.pilot.press("q")
        assert desk.app._exit


async def test_trouble_is_a_banner_that_escape_puts_away(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        trouble = TroubleMet(
            title="The disk is full", meaning="Nothing [more] is stored.", next_step="Free some space."
        )
        await desk.tell([*recorded.middle(str(desk.reference)), trouble])
        for part in ("! The disk is full", "Nothing [more] is stored.", "→ Free some space."):
            assert part in desk.seen
        await desk.press("escape")
        assert "The disk is full" not in desk.seen


async def test_a_click_on_the_key_line_is_the_key(opened: Opened, size: Size) -> None:
    async with opened(size) as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        line = desk.seen.splitlines()[-1]
        await desk.pilot.click(offset=(line.index("pause"), size[1] - 1))
        await desk.settle()
        assert desk.run.asked == [("pause",)]


async def test_actions_are_in_the_palette(opened: Opened) -> None:
    async with opened() as desk:
        titles = [command.title for command in desk.app.get_system_commands(desk.app.screen)]
        assert "One more" in titles


async def test_the_end_of_a_run_says_what_is_best(opened: Opened) -> None:
    async with opened() as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.tell(recorded.rest())
        assert desk.said == ["Best: c03, 2.31x. b selects it, a accepts it."]


async def test_a_run_without_a_best_counts_the_reasons(opened: Opened) -> None:
    async with opened() as desk:
        build = recorded.rejected("build_failed", "SyntaxError")
        told = [*recorded.opening(str(desk.reference)), RoundStarted(round=1, exemplars=())]
        for id in ("c01", "c02"):
            told += recorded.judged(recorded.candidate(id, 1, "x"), build)
        told += recorded.judged(recorded.candidate("c03", 1, "x"), recorded.accepted(3.0, 0.1, "not_drop_in"))
        await desk.tell([*told, RunFinished(reason="done", best=None, best_speedup=None)])
        assert "build failed 2, accepted 1" in desk.said[0]


async def test_a_round_in_which_nothing_was_left_says_so(opened: Opened) -> None:
    async with opened() as desk:
        await desk.tell([*recorded.middle(str(desk.reference)), *recorded.rest()])
        again = [RoundStarted(round=3, exemplars=()), RunFinished(reason="done", best="c03", best_speedup=2.31)]
        await desk.tell(again[:1])
        await desk.tell(again[1:])
        assert "Nothing is left to try" in desk.said[-1]


@pytest.mark.parametrize("key", ["colon", "ctrl+p"])
async def test_the_palette_finds_an_action_by_a_word(opened: Opened, key: str) -> None:
    async with opened() as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press(key)
        assert desk.app.screen is not desk.app.workbench
        await desk.press(*"techniq")
        while "what each technique gained" not in desk.seen:  # searched for in the background
            await desk.pilot.pause(0.05)
        await desk.press("enter")
        while desk.app.screen is not desk.app.workbench:
            await desk.press("enter")
        await desk.pilot.pause()
        assert desk.app.workbench.pane_view == "techniques"
