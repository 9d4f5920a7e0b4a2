"""Foreign text made safe to draw: no escapes, no control characters, one cell grid."""

from __future__ import annotations

from cudal1_core.plain import clean, one_line
from rich.cells import cell_len, set_cell_size

__all__ = ["clean", "fit", "one_line"]


def fit(text: str, width: int) -> str:
    """Exactly `width` cells: padded, or cut with an ellipsis."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(set_cell_size(text, width - 1).rstrip() + "…", width)
