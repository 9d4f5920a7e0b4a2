"""A line of styled text that is drawn again only when it changes."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static


class Line(Static):
    """Unlike Static, told the same text again it does nothing: no frame, no bytes to the terminal."""

    _told: Content | None = None

    def put(self, content: Content) -> None:
        if self._told is None or not content.is_same(self._told):
            self._told = content
            self.update(content, layout=False)
