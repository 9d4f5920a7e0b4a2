"""The screen in ASCII alone: every line is translated on its way out, whatever drew it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.segment import Segment
from textual.filter import LineFilter

if TYPE_CHECKING:
    from textual.color import Color

_GLYPHS = {
    "●": "*", "▸": ">", "·": ".", "✓": "+", "✗": "x", "◆": "#", "→": ">", "…": "~", "–": "-", "µ": "u",
    "─": "-", "━": "=", "┄": ".", "┊": "|", "│": "|", "┃": "|", "▎": ">", "▏": "|", "▕": "|", "█": "#",
    "▌": "|", "▐": "|",
    "╭": "+", "╮": "+", "╰": "+", "╯": "+", "┌": "+", "┐": "+", "└": "+", "┘": "+", "├": "+", "┤": "+",
    "▁": "_", "▂": "_", "▃": "-", "▄": "-", "▅": "=", "▆": "=", "▇": "#", "▔": "-", "▀": "-",
}  # fmt: skip
_TABLE = str.maketrans(_GLYPHS)


def to_ascii(text: str) -> str:
    """`text` in as many cells; what has no likeness becomes `?`."""
    if text.isascii():
        return text
    drawn = text.translate(_TABLE)
    return "".join(character if character.isascii() else "?" * cell_len(character) for character in drawn)


class Ascii(LineFilter):
    """Textual applies it to every line it draws."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(to_ascii(text), style, control) for text, style, control in segments]
