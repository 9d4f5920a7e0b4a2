"""The title of the terminal's window or tab: where a run stands, and whether it waits for the person."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cudal1_tui import words
from cudal1_tui.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from cudal1_tui.view import View

_KEEP, _BRING_BACK = "\x1b[22;2t", "\x1b[23;2t"  # xterm's stack of titles; others ignore it


def title(view: View) -> str:
    """`! decide c03 2.31x · softmax.py` where a decision is needed; a `!` first whenever a person is."""
    name = one_line(Path(view.reference).name) or "cudal1-tui"
    best = view.row(view.best)
    if view.trouble is not None:
        return f"! {one_line(view.trouble.title)} · {name}"
    if view.ending is not None:
        if best is not None and best.decision == "none":
            return f"! decide {one_line(best.id)} {words.speedup_text(best.speedup)} · {name}"
        return f"{view.ending} · {name}"
    parts = [name, f"round {view.round}/{view.rounds}" if view.round else "starting"]
    if best is not None:
        parts.append(f"best {words.speedup_text(best.speedup)}")
    return " · ".join(parts)


class TerminalTitle:
    """Writes the title through `write` when it changes; `end` brings back the one that was there before."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._shown: str | None = None

    def show(self, text: str) -> None:
        if text == self._shown:
            return
        if self._shown is None:
            self._write(_KEEP)
        self._shown = text
        self._write(f"\x1b]2;{text}\x07")

    def show_again(self) -> None:
        """A shell may have set its own in the meantime."""
        if self._shown is not None:
            self._write(f"\x1b]2;{self._shown}\x07")

    def end(self) -> None:
        if self._shown is not None:
            self._write(_BRING_BACK)
            self._shown = None
