"""One line a candidate: state, correctness, speedup with its interval, decision and title."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from cudal1_tui import words
from cudal1_tui.inks import ground, ink
from cudal1_tui.plain import fit, one_line
from cudal1_tui.rows import Rows

if TYPE_CHECKING:
    from textual.events import Click

    from cudal1_tui.view import Row, View

LONGEST_ID = 12
_DECISIONS = {"kept": "kept", "dismissed": "dismissed", "fed": "fed", "none": ""}


@dataclass(frozen=True, slots=True)
class Columns:
    """Widths in cells; 0 leaves a column out."""

    id: int
    state: int
    checks: int
    speedup: int
    interval: int
    decision: int
    title: int


def columns_for(width: int, *, decided: bool, longest: int = 3) -> Columns:
    """What fits: interval, decision and title go first, a number is never cut. `longest`: letters of an id."""
    id, state, checks, speedup = min(longest, LONGEST_ID) + 1, (18 if width >= 78 else 14), 8, 9
    left = width - (3 + id + state + checks + speedup)
    interval = min(left, 14) if left >= 13 else 0  # its text takes 13 at most
    left -= interval
    decision = 10 if decided and left >= 26 else 0
    left -= decision
    return Columns(id, state, checks, speedup, interval, decision, max(left - 1, 0) if left >= 6 else 0)


class CandidateList(ScrollView, can_focus=True):
    """Draws the rows of a view. Sends `Picked` when a row is clicked."""

    BORDER_TITLE = "candidates"
    EMPTY = "No candidate yet. The reference comes first."

    @dataclass
    class Picked(Message):
        candidate: str

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._rows = Rows()
        self._selected: str | None = None
        self._best: str | None = None
        self._decided = False  # something is
        self._longest = 3  # letters of an id

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self.refresh())

    def show(self, view: View) -> None:
        """Draw again only the lines that changed, and keep the selected one in sight."""
        marks = {self._selected, self._best} ^ {view.selected, view.best}
        grew = len(view.rows) != len(self._rows)
        moved = view.selected != self._selected
        changed = {place for place, old, row in view.rows.changed_since(self._rows) if _differs(old, row)}
        changed |= {place for id in marks if (place := view.rows.place(id)) is not None}
        self._rows, self._selected, self._best = view.rows, view.selected, view.best
        if changed:
            self._decided = any(row.decision != "none" for row in view.rows)
        if grew:
            self._longest = max((len(row.id) for row in view.rows), default=3)
            self.virtual_size = Size(self.size.width, len(view.rows) + 1)
            self.refresh()
        for number in sorted(changed):
            if number >= self.scroll_offset.y:  # else its line is the heading's
                self.refresh_lines(number + 1)
        if moved or grew:
            self._reveal()

    def on_resize(self) -> None:
        self._reveal()

    def on_click(self, event: Click) -> None:
        number = event.y - self.gutter.top - 1 + self.scroll_offset.y
        if event.y > self.gutter.top and 0 <= number < len(self._rows):
            self.post_message(self.Picked(self._rows[number].id))

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        columns = columns_for(width, decided=self._decided, longest=max(self._longest, 3))
        if y == 0:
            return Strip([Segment(_heading(columns, width), self.rich_style + ink(self.app, "muted"))], width)
        number = y - 1 + self.scroll_offset.y
        if not self._rows and y == 1:
            return Strip([Segment(fit(f"   {self.EMPTY}", width), self.rich_style + ink(self.app, "muted"))])
        if number >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        return self._draw(self._rows[number], columns, width)

    def _draw(self, row: Row, columns: Columns, width: int) -> Strip:
        chosen = row.id == self._selected
        base = self.rich_style + ground(self.app, "panel") if chosen else self.rich_style
        glyph, word = words.state_of(row, self._best)
        decided = _DECISIONS[row.decision]
        if decided and not columns.decision:
            word = decided
        title = _title(row)
        tint = words.ink_of(row, self._best)
        parts = [
            ("primary", "▎" if chosen else " "),
            (tint, f"{glyph} "),
            ("foreground", fit(one_line(row.id), columns.id)),
            (tint, fit(word, columns.state)),
            ("muted", words.checks_text(row).rjust(columns.checks - 2) + "  "),
            (
                words.speed_ink(row.speedup, row.interval),
                words.speedup_text(row.speedup).rjust(columns.speedup - 2) + "  ",
            ),
            ("muted", fit(words.interval_text(row.interval), columns.interval)),
            ("primary", fit(decided, columns.decision)),
            ("muted", fit(title, columns.title)),
        ]
        bold = chosen or row.id == self._best
        segments = [Segment(text, base + ink(self.app, name, bold=bold)) for name, text in parts if text]
        return Strip(segments).adjust_cell_length(width, base)

    def _reveal(self) -> None:
        number = self._rows.place(self._selected) or 0
        shown = max(self.size.height - 1, 1)  # the heading stays
        top = self.scroll_offset.y
        if number < top:
            self._scroll(number)
        elif number >= top + shown:
            self._scroll(number - shown + 1)

    def _scroll(self, top: int) -> None:
        """Forced, because a list that has just outgrown its pane has no scrollbar yet."""
        self.scroll_to(y=top, animate=False, immediate=True, force=True)


def _differs(old: Row | None, new: Row) -> bool:
    """Whether the line looks different; text that grew by a little does not."""
    if old is new:
        return False
    if old is None or (old.activity, old.verdict) != (new.activity, new.verdict):
        return True
    return _told(old) != _told(new)


def _told(row: Row) -> tuple[object, ...]:
    return row.id, words.checks_text(row), row.speedup, row.interval, row.decision, _title(row)


def _title(row: Row) -> str:
    if row.candidate is None:
        long = len(row.text)  # told in steps, so that a line is not drawn again for every token
        return f"{words.count_text(long - long % (100 if long > 100 else 20))} chars"
    title = one_line(row.candidate.title)
    labels = row.verdict.labels if row.verdict else ()
    if "not_drop_in" in labels:
        return f"! not drop-in: {title}"
    return f"? {title}" if row.advice is not None and row.advice.labels else title


def _heading(columns: Columns, width: int) -> str:
    text = f"   {'id':<{columns.id}}{'state':<{columns.state}}{'checks':>{columns.checks - 2}}  "
    text += f"{'speedup':>{columns.speedup - 2}}  " + fit("interval", columns.interval)
    return fit(text + fit("decision", columns.decision) + fit("title", columns.title), width)
