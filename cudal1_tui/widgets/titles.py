"""Titles of the panes about the selected candidate, and the list of views with their keys in a border."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content

from cudal1_tui.plain import fit, one_line
from cudal1_tui.views import OF_THE_RUN, VIEWS

if TYPE_CHECKING:
    from cudal1_tui.view import Row

_LEAST = 3  # views that are always listed
_NAME = 22  # cells that a candidate's name keeps beside the views


@dataclass(frozen=True, slots=True)
class Titles:
    """What stands in the upper and the lower border; a pane without a lower border has all of it above."""

    head: Content
    foot: Content


def titles(name: str, pane_view: str, *, stacked: bool, width: int) -> Titles:
    """`name` is the pane's subject, `width` that of the pane in cells."""
    room = max(width - 6, 10)
    if not stacked:
        return Titles(Content(fit(name, min(cell_len(name), room))), views(pane_view, room))
    listed = views(pane_view, room - min(cell_len(name), _NAME) - 3)
    left = max(room - listed.cell_length - 2, 4)
    short = fit(name, min(cell_len(name), left))
    rule = f" {'─' * (left - cell_len(short))} "
    return Titles(Content.assemble(short, (rule, "$muted"), listed), Content(""))


def subject(row: Row | None, pane_view: str, against: str) -> str:
    """What the pane is about; `against` names what a difference starts from."""
    if pane_view in OF_THE_RUN:
        return f"{pane_view} of the run"
    name = candidate_title(row)
    if pane_view == "diff":
        return f"{one_line(row.id) if row else name} against the {one_line(against)}"
    return name


def views(pane_view: str, room: int) -> Content:
    """As many views as fit into `room` cells with their keys, the one that is shown standing out."""
    for count in range(len(VIEWS), _LEAST - 1, -1):
        listed = list(range(count))
        at = VIEWS.index(pane_view)
        if at >= count:
            listed.append(at)
        parts = [(f"{n + 1} {VIEWS[n]}", "$primary bold" if n == at else "$muted") for n in listed]
        if len(listed) < len(VIEWS):
            parts.append((f"{count + 1}–{len(VIEWS)} more" if at < count else "…", "$muted"))
        line = Content.styled(" · ", "$muted").join(Content.styled(*part) for part in parts)
        if line.cell_length <= room:
            break
    return line


def candidate_title(row: Row | None) -> str:
    """`c07 · fused softmax`, without line breaks."""
    if row is None:
        return "candidate"
    title = one_line(row.candidate.title) if row.candidate else ""
    return f"{one_line(row.id)} · {title}" if title else one_line(row.id)
