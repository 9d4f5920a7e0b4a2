"""A scrolling pane of styled text that wraps, drawn line by line: new text costs no layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

if TYPE_CHECKING:
    from textual.selection import Selection


class TextPane(ScrollView, can_focus=True):
    """Shows one content; text can be selected with the mouse."""

    ALLOW_SELECT = True

    def __init__(self, title: str, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.border_title = title
        self._content = Content("")
        self._strips: list[Strip] = []
        self._width = 0  # that the strips were made for; 0 where they have to be made again

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._lay_out())

    @property
    def room(self) -> int:
        """Cells a line may take."""
        return max(self.scrollable_content_region.width, 20)

    def show(self, content: Content) -> None:
        if content.is_same(self._content) and self._width == self.room:
            return
        self._content = content
        self._lay_out()

    def render(self) -> Content:
        return self._content

    def render_line(self, y: int) -> Strip:
        if self._width != self.room:
            self._lay_out()
        width, number = self.scrollable_content_region.width, y + self.scroll_offset.y
        if number >= len(self._strips):
            return Strip.blank(width, self.rich_style)
        return self._strips[number].crop_extend(0, width, self.rich_style)

    def selection_updated(self, selection: Selection | None) -> None:
        self._lay_out()

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        self._width = self.room
        self._strips = Visual.to_strips(self, self._content, self._width, None, self.visual_style)
        self.virtual_size = Size(self._width, len(self._strips))
        self.refresh()
