"""Numbers and foreign text as reports show them."""

from __future__ import annotations

import html

from cudal1_core.plain import one_line

DASH = "–"


def times(value: float | None) -> str:
    """`1.28x`; two significant digits below 0.1, none after the point above 1000."""
    if value is None:
        return DASH
    return f"{value:.0f}x" if value >= 1000 else f"{value:.2f}x" if value >= 0.1 else f"{value:.2g}x"


def interval(values: tuple[float, float] | None) -> str:
    return f"{times(values[0])[:-1]}{DASH}{times(values[1])[:-1]}" if values else ""


def milliseconds(value: float | None) -> str:
    """Three significant digits: `0.0153`, `2500`."""
    return DASH if value is None else f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def escape_markdown(text: str) -> str:
    """One line in which no character is markup."""
    return "".join(f"\\{character}" if character in "\\`*_[]<>|#~" else character for character in one_line(text))


def escape_html(text: str) -> str:
    """One line in which no character is markup."""
    return html.escape(one_line(text))
