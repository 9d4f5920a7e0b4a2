"""The last line: the keys that matter now; those without effect are greyed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.message import Message

from cudal1_tui.actions import ACTIONS, Action, key_name
from cudal1_tui.widgets.line import Line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.events import Click


WIDE = 120  # columns from which there is room for more than the usual keys
ROOMY = 66  # and for two spaces between them


class KeyLine(Line):
    """Takes words for actions that change their name, and the actions that do nothing now."""

    class Chosen(Message):
        """An action was clicked."""

        def __init__(self, call: str) -> None:
            super().__init__()
            self.call = call

    def __init__(self, actions: tuple[Action, ...] = ACTIONS, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._actions = actions
        self._ends: list[tuple[int, str]] = []

    def show(self, *, idle: frozenset[str], names: Mapping[str, str], extra: frozenset[str]) -> None:
        """`idle`: ids without effect now; `names`: other words for ids; `extra`: ids shown as well."""
        shown = extra | {action.id for action in self._actions if action.shown == "always"}
        if self.size.width >= WIDE:
            shown |= {action.id for action in self._actions if action.shown == "wide"}
        content, self._ends = key_line(
            frozenset(shown), idle, names, tight=self.size.width < ROOMY, actions=self._actions
        )
        self.put(content)

    def on_click(self, event: Click) -> None:
        for end, call in self._ends:
            if event.x < end:
                self.post_message(self.Chosen(call))
                return


def key_line(
    shown: frozenset[str],
    idle: frozenset[str],
    names: Mapping[str, str],
    *,
    tight: bool,
    actions: tuple[Action, ...] = ACTIONS,
) -> tuple[Content, list[tuple[int, str]]]:
    """The line, and for each action the column where it ends and what it calls."""
    parts: list[Content] = []
    ends: list[tuple[int, str]] = []
    column = 0
    for action in actions:
        if action.id not in shown:
            continue
        muted = action.id in idle
        part = Content.assemble(
            (f" {key_name(action.keys[0])}", "$muted" if muted else "$primary bold"),
            (
                f" {names.get(action.id, action.description)}{'' if tight else ' '}",
                "$muted" if muted else "$foreground",
            ),
        )
        column += part.cell_length
        parts.append(part)
        ends.append((column, action.call))
    return Content("").join(parts), ends
