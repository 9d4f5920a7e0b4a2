"""The selected candidate's code: as it is written, when it is written, and against the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cudal1_tui.code import SIDES, Growing, diff_lines, plain_lines, python_lines, side_lines
from cudal1_tui.widgets.code_view import CodeView

if TYPE_CHECKING:
    from cudal1_tui.view import Row

CodeMode = Literal["code", "diff"]


class CodeStream(CodeView):
    """Follows text at its end until the person scrolls up; whole text is coloured as a whole."""

    BORDER_TITLE = "code"
    EMPTY = "The first candidate appears here as it is written."

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._growing = Growing()
        self._shown: tuple[object, ...] = ()  # what the lines were made from

    def show(self, row: Row | None, before: str, mode: CodeMode, name: str = "reference") -> None:
        """Draw `row`; a row whose text only grew costs its new lines. `before` is what a diff starts from."""
        key: tuple[object, ...]
        if row is None:
            key = ("empty",)
            if key != self._shown:
                self.show_lines(plain_lines(self.EMPTY, "muted"), numbers=False)
        elif row.candidate is None and mode == "code":
            key = ("growing", row.id)
            if key == self._shown and row.text.startswith(self._growing.text):
                self._grow(row.text[len(self._growing.text) :])
            else:
                self._growing = Growing()
                self.show_lines(())
                self._grow(row.text)
        else:
            key = (mode, row.id, row.source, (before, name, self._sides) if mode == "diff" else "")
            if key != self._shown:
                self._show_whole(row, before, mode, name)
        self._shown = key

    @property
    def _sides(self) -> int:
        """Cells for both sides of a difference, 0 where they do not fit side by side."""
        width = self.scrollable_content_region.width
        return width if width >= SIDES else 0

    def _grow(self, text: str) -> None:
        if text:
            changed = self._growing.append(text)
            self.grow_lines(self._growing.lines, changed)

    def _show_whole(self, row: Row, before: str, mode: CodeMode, name: str) -> None:
        if mode == "diff":
            width = self._sides
            lines = side_lines(before, row.source, name, width) if width else diff_lines(before, row.source, name)
            self.show_lines(lines, numbers=False)
        elif row.candidate is not None and row.candidate.source:
            self.show_lines(python_lines(row.source))
        else:
            self.show_lines(plain_lines(row.text or "The answer held no code.", "muted"), numbers=False)
