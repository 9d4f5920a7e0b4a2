"""Advice on the screen: a mark in the list, words beside the checks, and never a state of its own."""

from __future__ import annotations

from cudal1_core.advice.advice import Advice, Finding, Review, Similar
from cudal1_core.events import AdviceGiven
from cudal1_core.verdict import Verdict

from cudal1_tui import state
from cudal1_tui.advice_text import advice_lines
from cudal1_tui.verdict_text import lines
from cudal1_tui.view import View
from cudal1_tui.widgets.candidate_list import _title
from cudal1_tui.widgets.evidence import correctness
from cudal1_tui.words import state_of
from tests.tui import recorded

ADVICE = Advice(
    (Finding("caches_by_identity", 12, "if x.data_ptr() in [b]seen:"), Finding("uses_compile", 3, "torch.compile(f)")),
    (Similar("answers by address", "answers are kept by the inputs' address", "New values get the old answer.", 0.42),),
    Review("judge-7b", True, "cache", 12, "It looks up \x1b[31m an address."),
)


def judged() -> View:
    view = View()
    for event in recorded.middle("/x/softmax.py"):
        view = state.reduce(view, event, 0.0)
    return view


def test_the_screen_shows_it_and_no_state_changes() -> None:
    before = judged()
    after = state.reduce(before, AdviceGiven(candidate="c01", advice=ADVICE), 0.0)
    old, new = before.row("c01"), after.row("c01")
    assert old is not None
    assert new is not None
    assert state_of(new, after.best) == state_of(old, before.best)
    assert after.best == before.best
    assert _title(new) == f"? {_title(old)}"
    told = correctness(new, after, 80).plain
    assert "? advice  which decides nothing\n  line 12 looks something up by an address" in told
    assert "42% like a known cheat: answers are kept by the inputs' address" in told
    assert "judge-7b objects (cache, line 12)" in told
    assert "torch.compile" not in told  # ordinary means need no second look
    assert "\x1b" not in told
    assert "advice" not in correctness(old, before, 80).plain


def test_verify_tells_it_short_or_whole() -> None:
    verdict = Verdict("accepted", speedup=2.0, speedup_interval=(1.9, 2.1))
    short = [line.plain for line in lines(verdict, explain=False, advice=ADVICE)]
    assert short[-1] == "  advice: caches by identity, reviewer objects; --explain tells more"
    assert [line.plain for line in lines(verdict, explain=False, advice=Advice())] == short[:-1]
    whole = "\n".join(line.plain for line in advice_lines(ADVICE, explain=True))
    assert "? line 12 looks something up by an address" in whole
    assert "if x.data_ptr() in [b]seen:" in whole
    assert "· line 3 leaves the work to a compiler" in whole
    assert "nothing in the source" in advice_lines(Advice(), explain=True)[-1].plain
