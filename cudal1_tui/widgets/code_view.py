"""Lines of coloured pieces in a scrolling pane, drawn line by line; the base of every code pane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.segment import Segment
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from cudal1_tui.inks import ink

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.selection import Selection

    from cudal1_tui.code import Line


class CodeView(ScrollView, can_focus=True):
    """Shows lines with numbers; text can be selected with the mouse."""

    ALLOW_SELECT = True

    def __init__(self, *, id: str | None = None, classes: str | None = None, numbers: bool = True) -> None:
        super().__init__(id=id, classes=classes)
        self.lines: Sequence[Line] = ()
        self.numbers = numbers
        self._strips: dict[int, Strip] = {}
        self._longest = 0

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._forget())

    def show_lines(self, lines: Sequence[Line], *, numbers: bool = True) -> None:
        """Replace everything and go to the top."""
        self.lines = lines
        self.numbers = numbers
        self._strips.clear()
        self._longest = max((_width(line) for line in lines), default=0)
        self._resize()
        self.scroll_to(0, 0, animate=False, immediate=True)
        self.refresh()

    def recolour(self, lines: Sequence[Line]) -> None:
        """The same text in other colours; nothing moves."""
        self.lines = lines
        self._forget()

    def grow_lines(self, lines: Sequence[Line], changed: int) -> None:
        """The same text with lines from `changed` on new; only those are drawn again."""
        at_end = self.is_vertical_scroll_end
        self.lines = lines
        for number in range(changed, len(lines)):
            self._strips.pop(number, None)
            self._longest = max(self._longest, _width(lines[number]))
        self._resize()
        if at_end and self.max_scroll_y > self.scroll_y:
            self.scroll_end(animate=False, immediate=True, x_axis=False, force=True)
        else:
            self.refresh_lines(changed, len(lines) - changed)

    @property
    def text(self) -> str:
        """What is shown, as plain text."""
        return "\n".join("".join(piece for _, piece in line) for line in self.lines)

    def render_line(self, y: int) -> Strip:
        scroll_x, scroll_y = self.scroll_offset
        number, width, base = y + scroll_y, self.scrollable_content_region.width, self.rich_style
        if number >= len(self.lines):
            return Strip.blank(width, base)
        strip = self._strips.get(number)
        if strip is None:
            strip = self._strips[number] = self._draw(number)
        gutter = self._gutter
        room = width - gutter
        shown = strip.crop_extend(scroll_x, scroll_x + room, base)
        if strip.cell_length > scroll_x + room > 1:
            more = Strip([Segment("…", base + ink(self.app, "muted"))], 1)
            shown = Strip.join([shown.crop(0, room - 1), more])
        shown = shown.apply_offsets(scroll_x, number)
        if not gutter:
            return shown
        label = Segment(f"{number + 1:>{gutter - 2}}  ", base + ink(self.app, "code-comment"))
        return Strip.join([Strip([label], gutter), shown])

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract(self.text), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self._forget()

    @property
    def _gutter(self) -> int:
        return max(len(str(len(self.lines))), 2) + 3 if self.numbers else 0

    def _draw(self, number: int) -> Strip:
        base = self.rich_style
        segments = [Segment(text, base + ink(self.app, name)) for name, text in self.lines[number]]
        strip = Strip(segments)
        span = self.text_selection.get_span(number) if self.text_selection else None
        if span is None:
            return strip
        start, end = span[0], span[1] if span[1] >= 0 else strip.cell_length
        marked = self.screen.get_component_rich_style("screen--selection")
        # apply_style would put the mark under the colours, so it goes on each segment
        before, middle, after = strip.crop(0, start), strip.crop(start, end), strip.crop(end)
        lit = Strip([Segment(s.text, (s.style or base) + marked) for s in middle])
        return Strip.join([before, lit, after])

    def _resize(self) -> None:
        self.virtual_size = Size(self._longest + self._gutter, len(self.lines))

    def _forget(self) -> None:
        self._strips.clear()
        self.refresh()


def _width(line: Line) -> int:
    return sum(cell_len(text) for _, text in line)
