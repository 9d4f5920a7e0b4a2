"""Titles of the panes about the selected candidate; where panes are stacked they hold the views too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content

from cudal1_tui.pages import PAGES
from cudal1_tui.plain import fit, one_line

if TYPE_CHECKING:
    from cudal1_tui.view import Row

VIEWS = (("1 code", "code"), ("2 diff", "diff"), ("3 evidence", "evidence"))


@dataclass(frozen=True, slots=True)
class Titles:
    """What stands in the borders."""

    code: Content
    code_foot: Content  # only drawn where the pane has a lower border
    correctness: Content
    speed: Content


def titles(row: Row | None, pane_view: str, *, stacked: bool, width: int) -> Titles:
    """`width` is that of the screen in cells."""
    views = _views(pane_view)
    name = candidate_title(row)
    if not stacked:
        return Titles(Content(name), views, Content("correctness"), Content("speed"))
    room = max(width - views.cell_length - 6, 4)
    short = fit(name, min(cell_len(name), room))
    rule = f" {'─' * (room - cell_len(short))} "
    checks = f"{one_line(row.id)} · correctness" if row else "correctness"
    return Titles(
        Content.assemble(short, (rule, "$muted"), views),
        views,
        Content(checks),
        Content.assemble("speed ", ("── ", "$muted"), views),
    )


def page_title(pane_view: str) -> Content:
    """The pages by number, with the one that is shown standing out."""
    parts = [
        (f"{number} {name}", "$primary bold" if name == pane_view else "$muted") for number, name in enumerate(PAGES, 4)
    ]
    return Content.styled(" · ", "$muted").join(Content.styled(*part) for part in parts)


def candidate_title(row: Row | None) -> str:
    """`c07 · fused softmax`, without line breaks."""
    if row is None:
        return "candidate"
    title = one_line(row.candidate.title) if row.candidate else ""
    return f"{one_line(row.id)} · {title}" if title else one_line(row.id)


def _views(pane_view: str) -> Content:
    parts = [(name, "$primary bold" if key == pane_view else "$muted") for name, key in VIEWS]
    return Content.styled(" · ", "$muted").join(Content.styled(*part) for part in parts)
