"""The pane in focus, then keys, glyphs and labels, on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from cudal1_tui import words
from cudal1_tui.actions import ACTIONS, Action, key_name
from cudal1_tui.screens.pane_help import ABOUT

if TYPE_CHECKING:
    from textual.app import ComposeResult


class HelpScreen(ModalScreen[None]):
    """Scrolls; any of the keys that open or leave things closes it."""

    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar = [
        Binding("escape,question_mark,q,f1", "dismiss", "close"),
        Binding("j", "scroll(1)", "down"),
        Binding("k", "scroll(-1)", "up"),
    ]

    def __init__(self, actions: tuple[Action, ...] = ACTIONS, about: str = "") -> None:
        """`about` is a key of ABOUT: the pane that has the focus, or what it shows."""
        super().__init__()
        self._actions = actions
        self._about = about

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="page"):
            yield Static(page(self._actions, self._about))

    def on_mount(self) -> None:
        self.query_one("#page").border_title = "help"
        self.query_one("#page").border_subtitle = "j k scroll · esc closes"

    def action_scroll(self, lines: int) -> None:
        self.query_one("#page").scroll_relative(y=lines, animate=False)


def page(actions: tuple[Action, ...] = ACTIONS, about: str = "") -> Content:
    """The text of the help."""
    lines: list[Content] = []
    if pane := ABOUT.get(about):
        lines += [_heading(about.capitalize()), Content(pane.text)]
        by_id = {action.id: action for action in actions}
        lines += [_key(by_id[id]) for id in pane.actions] + [Content("")]
    here = pane.actions if pane else ()
    lines += [_heading("Other keys" if here else "Keys")]
    lines += [_key(action) for action in actions if action.id not in here]
    lines += [Content(""), _heading("Glyphs")]
    lines += [Content.assemble((f"{glyph:<10}", "bold"), meaning) for glyph, meaning in words.LEGEND.items()]
    lines += [Content(""), _heading("Labels: facts that do not decide")]
    for label, meaning in words.LABELS.items():
        lines.append(Content.assemble((label, "$warning"), f"  {meaning}"))
    lines += [
        Content(""),
        Content.styled("Speedup is the reference's time divided by the candidate's, rounded towards 1.", "$muted"),
        Content.styled("Blue is faster, orange is slower; the brackets hold the interval.", "$muted"),
    ]
    return Content("\n").join(lines)


def _key(action: Action) -> Content:
    keys = " ".join(key_name(key) for key in action.keys)
    return Content.assemble((f"{keys:<10}", "$primary bold"), (action.tooltip, ""))


def _heading(text: str) -> Content:
    return Content.styled(text, "$foreground bold")
