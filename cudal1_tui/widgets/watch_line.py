"""What the watch is doing: the newest save, what keeps it waiting, and what accepted files are worth today."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from textual.content import Content

from cudal1_tui import words
from cudal1_tui.plain import fit, one_line
from cudal1_tui.widgets.line import Line

if TYPE_CHECKING:
    from cudal1_tui.view import View


class WatchLine(Line):
    """One row; not there where nothing is watched."""

    def show(self, view: View) -> None:
        self.display = view.watch is not None
        self.put(watch_line(view, self.size.width or 80))


def watch_line(view: View, width: int) -> Content:
    """The line as content of at most `width` cells; what an accepted file is worth comes first where it is wrong."""
    watch = view.watch
    if watch is None:
        return Content("")
    told = [one_line(text) for text in (_standings(view), _seen(view), _places(view)) if text]
    warns = any(one.state in ("wrong", "slower") for one in watch.accepted.values())
    warns = warns or (watch.seen is not None and watch.seen.state in ("unreadable", "gone"))
    if not any(one.state == "wrong" for one in watch.accepted.values()):
        told = [one_line(text) for text in (_seen(view), _standings(view), _places(view)) if text]
    text = fit(" · ".join(told), width - 4)
    return Content.assemble((" ! " if warns else " ▸ ", "$warning bold" if warns else "$primary"), (text, "$muted"))


def _places(view: View) -> str:
    assert view.watch is not None
    names = [Path(path).name or path for path in view.watch.paths]
    shown = f"{', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"
    count = view.watch.references
    how = "" if view.watch.how == "inotify" else f", by {view.watch.how}"
    return f"watching {shown} ({count} reference{'' if count == 1 else 's'}{how})"


def _seen(view: View) -> str:
    assert view.watch is not None
    seen = view.watch.seen
    if seen is None:
        return "waiting for a save"
    at = time.strftime("%H:%M:%S", time.localtime(seen.at))
    if seen.state == "changed":
        return f"{at} {Path(seen.path).name} was saved"
    if seen.state == "unchanged":
        return f"{at} {Path(seen.path).name}: {seen.message}"
    return f"{at} {seen.message}; waits for the next save"


def _standings(view: View) -> str:
    assert view.watch is not None
    told = []
    for path, one in view.watch.accepted.items():
        figure = f" {words.speedup_text(one.speedup)}" if one.speedup is not None else ""
        was = f" (was {words.speedup_text(one.was)})" if one.was is not None else ""
        told.append(f"{Path(path).name}: {words.STANDINGS[one.state]}{figure}{was}")
    return ", ".join(told)
