"""Speedup by candidate as a plot of characters: a mark each, intervals, and a line for the best so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from cudal1_tui import words
from cudal1_tui.scale import scale_for
from cudal1_tui.views import NO_PLOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from cudal1_tui.view import Row, View

AXIS = 8  # cells left of the plot: a speedup and the line
WIDEST = 16  # columns a candidate takes at most

Cell = tuple[str, str]  # one character, its colour


def plot(view: View, width: int, height: int) -> list[Content]:
    """At most `height` lines, two of which are the axis; of too many candidates the last are shown."""
    timed = [row.speedup for row in view.rows if row.speedup is not None]
    if not timed:
        return [Content.styled(NO_PLOT, "$muted")]
    room, levels = max(width - AXIS, 8), min(max(height - 2, 4), 24)
    shown = view.rows[-room:]
    step = min(max(room // len(shown), 1), WIDEST)
    scale = scale_for(timed)

    def level(speedup: float) -> int:
        return round(scale.height(speedup) * (levels - 1))

    grid: list[list[Cell]] = [[(" ", "")] * (len(shown) * step) for _ in range(levels)]
    grid[level(1.0)] = [("┄", "$muted")] * (len(shown) * step)
    best = max((row.speedup or 0.0 for row in view.rows[: -len(shown)] if row.can_be_best), default=None)
    for number, row in enumerate(shown):
        risen = best
        if row.can_be_best and row.speedup is not None:
            risen = max(best or 0.0, row.speedup)
        if risen is not None:
            _rise(grid, number * step, step, level(best) if best is not None else None, level(risen))
        best = risen
    for number, row in enumerate(shown):  # after the line, so that no mark is hidden
        if row.interval is not None and row.speedup is not None:
            for at in range(level(row.interval[0]), level(row.interval[1]) + 1):
                grid[at][number * step] = ("┊", "$muted")
    for number, row in enumerate(shown):
        if row.speedup is not None:
            grid[level(row.speedup)][number * step] = mark(row, view)
    labels = _labels([max(timed), 1.0, *scale.ticks()], level)
    lines = [
        Content.assemble((f"{labels.get(at, ''):>{AXIS - 2}} │", "$muted"), *grid[at]) for at in reversed(range(levels))
    ]
    under = [("✗" if _failed(row) else "·" if row.speedup is None else "─", _under_ink(row)) for row in shown]
    axis = [cell for mark_under in under for cell in (mark_under, ("─" * (step - 1), "$muted"))]
    lines.append(Content.assemble((" " * (AXIS - 1) + "└", "$muted"), *axis))
    lines.append(Content.styled(_round_starts(shown, step, len(view.rows) - len(shown), room), "$muted"))
    return lines


def mark(row: Row, view: View) -> Cell:
    """The glyph of a candidate that has been timed; the selected one stands out."""
    lit = " reverse" if row.id == view.selected else ""
    if row.decision == "kept":
        return "◆", f"$primary bold{lit}"
    if row.id == view.best:
        return "●", f"$best bold{lit}"
    accepted = row.verdict is not None and row.verdict.accepted
    if accepted and not row.can_be_best:
        return "!", f"$warning{lit}"
    return ("✓", f"${words.speed_ink(row.speedup, row.interval)}{lit}") if accepted else ("▸", f"$primary{lit}")


def _rise(grid: list[list[Cell]], left: int, step: int, before: int | None, after: int) -> None:
    """The line of the best over one candidate's columns; it rises in the column before."""
    for column in range(left, left + step):
        grid[after][column] = ("─", "$best")
    if before is not None and before < after and step > 1:
        grid[before][left - 1], grid[after][left - 1] = ("╯", "$best"), ("╭", "$best")
        for level in range(before + 1, after):
            grid[level][left - 1] = ("│", "$best")


def _labels(wanted: list[float], level: Callable[[float], int]) -> dict[int, str]:
    """Labels by level, the earlier ones first, and none beside another."""
    labels: dict[int, str] = {}
    for value in wanted:
        at = level(value)
        if not {at - 1, at, at + 1} & labels.keys():
            labels[at] = words.speedup_text(value)
    return labels


def _failed(row: Row) -> bool:
    return row.verdict is not None and not row.verdict.accepted


def _under_ink(row: Row) -> str:
    return "$failed" if _failed(row) else "$muted"


def _round_starts(rows: tuple[Row, ...], step: int, left_out: int, room: int) -> str:
    """`r1      r2   ` under the candidates with which the rounds begin, and how many lie further back."""
    line, last = "", 0
    for number, row in enumerate(rows):
        if row.round != last and len(line) <= number * step:
            line = line.ljust(number * step) + f"r{row.round} "
        last = row.round
    told = f"{left_out} earlier do not fit" if left_out else ""
    if told and len(line) + len(told) > room:
        return f"{' ' * AXIS}{told}"[: AXIS + room]
    return f"{' ' * AXIS}{line}{told}".rstrip()
