"""Theme colours by name, as Rich styles for widgets that draw their own lines."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from rich.style import Style
from textual.color import Color

if TYPE_CHECKING:
    from textual.app import App
    from textual.theme import Theme

# For themes that are not ours: readable on a dark and on a light ground.
DARK = {
    "faster": "#6cb6ff", "slower": "#f2994a", "best": "#ffd479", "muted": "#98a5b8", "ok": "#9ccfd8",
    "failed": "#f2a071", "code-keyword": "#c4a7ff", "code-name": "#82c7ff", "code-string": "#a8d5a2",
    "code-number": "#f5c07a", "code-comment": "#8f9db2", "code-operator": "#b5c0d0",
    "code-decorator": "#f0b45a", "code-builtin": "#7fd1d8", "diff-added": "#6cb6ff",
    "diff-removed": "#f2994a", "diff-place": "#c4a7ff",
}  # fmt: skip
LIGHT = {
    "faster": "#0a4f9e", "slower": "#8a3c00", "best": "#6d4400", "muted": "#4b5666", "ok": "#0d5560",
    "failed": "#883600", "code-keyword": "#5b2ba0", "code-name": "#0a4588", "code-string": "#26541b",
    "code-number": "#783b00", "code-comment": "#505b6a", "code-operator": "#3f4a5a",
    "code-decorator": "#6d4408", "code-builtin": "#0b4f58", "diff-added": "#0a4f9e",
    "diff-removed": "#8a3c00", "diff-place": "#5b2ba0",
}  # fmt: skip


def defaults(theme: Theme) -> dict[str, str]:
    """A value for every variable of our own, so that any theme can be chosen."""
    return DARK if theme.dark else LIGHT


def ink(app: App[object], name: str, *, bold: bool = False, reverse: bool = False) -> Style:
    """The style of a theme colour; the plain style where the theme leaves that colour to the terminal."""
    return _style(app.theme_variables.get(name, ""), bold, reverse)


def ground(app: App[object], name: str) -> Style:
    """A style with a theme colour as background."""
    colour = app.theme_variables.get(name, "")
    return Style(bgcolor=_colour(colour).rich_color) if colour else Style()


@lru_cache(maxsize=256)
def _style(colour: str, bold: bool, reverse: bool) -> Style:
    return Style(color=_colour(colour).rich_color if colour else None, bold=bold or None, reverse=reverse or None)


@lru_cache(maxsize=256)
def _colour(value: str) -> Color:
    return Color.parse(value)
