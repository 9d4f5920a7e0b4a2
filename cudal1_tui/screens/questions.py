"""Questions that stop the work: a file that is there already, and leaving while the run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from cudal1_core import accept
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from cudal1_tui.plain import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from textual.app import ComposeResult

    from cudal1_tui.session import Taken

Answer = TypeVar("Answer")


class Question(ModalScreen["Answer | None"], Generic[Answer]):
    """A title, a sentence, and choices, each with a key; escape answers None."""

    CSS_PATH = "questions.tcss"
    BINDINGS: ClassVar = [
        Binding("escape", "answer('')", "cancel"),
        Binding("up,left,k", "app.focus_previous", "previous"),
        Binding("down,right,j", "app.focus_next", "next"),
    ]

    def __init__(self, title: str, meaning: str, choices: list[tuple[str, str, Answer | None]]) -> None:
        """`choices` are key, words and answer; the last has the focus, so it should be the harmless one."""
        super().__init__()
        self._title = title
        self._meaning = meaning
        self._choices = choices
        for key, _, _ in choices:
            self._bindings.bind(key, f"answer('{key}')")

    def compose(self) -> ComposeResult:
        with Vertical(id="question"):
            yield Static(Content.styled(one_line(self._title), "bold"), id="title")
            yield Static(Content(self._meaning), id="meaning")
            with Vertical(id="choices"):
                for key, words, _ in self._choices:
                    label = Content.assemble((key, "bold underline"), f" {words}")
                    yield Button(label, id=f"choice-{key}", compact=True)

    def on_mount(self) -> None:
        self.query(Button).last().focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.action_answer((event.button.id or "").removeprefix("choice-"))

    def action_answer(self, key: str) -> None:
        self.dismiss(next((answer for known, _, answer in self._choices if known == key), None))


def ask_about_file(target: Path) -> Question[Taken]:
    """What to do where the file that accepting would write is there."""
    free = accept.free_path(target)
    return Question(
        f"{target.name} exists",
        f"In {target.parent}. Accepting never replaces a file unasked.",
        [("o", "overwrite it", "overwrite"), ("w", f"write {free.name}", "beside"), ("c", "cancel", None)],
    )


def ask_to_quit() -> Question[bool]:
    """Whether to leave while work is running."""
    return Question(
        "Work is running",
        "Quitting stops it. Everything judged so far is kept in the archive.",
        [("q", "stop and quit", True), ("s", "stay", None)],
    )
