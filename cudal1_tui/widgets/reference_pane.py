"""The reference: its file and facts in a line or two, and its code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from cudal1_tui import words
from cudal1_tui.code import plain_lines, python_lines
from cudal1_tui.plain import one_line
from cudal1_tui.widgets.code_view import CodeView

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from cudal1_tui.view import View


class ReferencePane(Vertical):
    """Facts above, code below; in a small terminal the facts alone."""

    BORDER_TITLE = "reference"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._code = ""

    def compose(self) -> ComposeResult:
        yield Static(id="facts")
        yield CodeView(id="reference-code")

    def show(self, view: View, source: str) -> None:
        """`source` is the file's text, known before the task has been read."""
        name = one_line(Path(view.reference).name) if view.reference else "reference"
        self.border_title = Content(name)
        self.query_one("#facts", Static).update(facts(view, name, self.size.width - 4))
        code = view.task.source if view.task else source
        if code != self._code:
            self._code = code
            self.query_one(CodeView).show_lines(plain_lines(code))
            self.call_after_refresh(self._colour)  # the lexer costs more than the whole first paint

    def _colour(self) -> None:
        self.query_one(CodeView).recolour(python_lines(self._code))


def facts(view: View, name: str, width: int) -> Content:
    """File, class, shapes and times of the reference; the first line holds what a small terminal shows."""
    task = view.task
    if task is None:
        told = "was not read" if view.ending else "reading and timing the reference…"
        return Content.assemble((name, "$foreground bold"), (f"  {told}", "$muted"))
    shapes = f"{', '.join(task.inputs)} → {', '.join(task.outputs)}"
    first = Content.assemble((name, "$foreground bold"), (f"  {one_line(task.model)}", "$code-name"))
    if not view.baselines:
        first = first.append(Content.styled("  not timed yet", "$muted"))
    later = Content("")
    for key, ms in view.baselines.items():
        time = Content.assemble((f"  {one_line(key)} ", "$muted"), (words.ms_text(ms), "$foreground"))
        if not later and first.cell_length + time.cell_length <= width:
            first = first.append(time)
        else:
            later = later.append(time)
    weights = f"{words.count_text(task.parameters)} weights, {task.dtype}, {one_line(task.device)}"
    last = Content.styled(weights, "$muted")
    if later:
        last = Content.assemble(later[2:], "  ", last)
    lines = [first, Content.styled(one_line(shapes), "$muted"), last]
    lines += [
        Content.assemble((f"! {label}", "$warning"), (f"  {words.LABELS.get(label, '')}", "$muted"))
        for label in task.labels
    ]
    return Content("\n").join(lines)
