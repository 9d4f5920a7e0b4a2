"""The first line: what runs, how far it is, the best so far, the device, the time spent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content

from cudal1_tui import words
from cudal1_tui.plain import fit, one_line
from cudal1_tui.widgets.line import Line

if TYPE_CHECKING:
    from cudal1_tui.view import Row, View

Part = tuple[str, str]


class StatusLine(Line):
    """One row. Parts that do not fit are left out, the least needed first."""

    def show(self, view: View, *, mode: str, paused: bool, seconds: float) -> None:
        """Draw; `seconds` is the time the run has taken."""
        self.put(status(view, mode=mode, paused=paused, seconds=seconds, width=self.size.width or 80))


def status(view: View, *, mode: str, paused: bool, seconds: float, width: int) -> Content:
    """The line as content of at most `width` cells."""
    glyph, word = words.activity_text(view, paused=paused)
    best = view.row(view.best)
    device = one_line(view.task.device_name if view.task else view.device)
    parts: list[tuple[int, list[Part]]] = [  # how needed (0 always), text with its colour
        (2, [("cudal1-tui", "$primary bold")]),
        (3, [(mode, "$muted")]),
        (0, [(f"{glyph} {word}", "$foreground bold")]),
        (0, [("round ", "$muted"), (f"{view.round}/{view.rounds or words.DASH}", "")]),
        (0, _best_parts(best)),
        (4, [(one_line(view.policy), "$muted")] if view.policy else []),
        (1, [(fit(device, min(cell_len(device), 24)), "$muted")] if device else []),
        (3, [(told, "$muted")] if (told := words.machine_text(view.machine)) else []),
        (1, [(told, "$warning")] if (told := words.foreign_text(view.machine)) else []),
    ]
    clock = words.duration_text(seconds)
    for need in range(5, -1, -1):
        left = Content.assemble(" ", *_joined([text for needed, text in parts if needed <= need and text]))
        room = width - left.cell_length - len(clock) - 1
        if room >= 2:
            return Content.assemble(left, " " * room, (clock, "$muted"), " ")
    return left


def _joined(groups: list[list[Part]]) -> list[Part]:
    joined: list[Part] = []
    for group in groups:
        joined += [("   ", ""), *group] if joined else group
    return joined


def _best_parts(best: Row | None) -> list[Part]:
    if best is None:
        return [("best ", "$muted"), (words.DASH, "$muted")]
    colour = f"${words.speed_ink(best.speedup, best.interval)}"
    name = (f"● {one_line(best.id)} ", "$best bold")
    return [("best ", "$muted"), name, (words.speedup_text(best.speedup), f"{colour} bold")]
