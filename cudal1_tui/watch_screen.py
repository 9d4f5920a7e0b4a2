"""The workbench over a watch: it shows the run of the newest save."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cudal1_core.errors import UsageError

from cudal1_tui import app
from cudal1_tui.commands.watch import prepared_watch
from cudal1_tui.later import RunLater
from cudal1_tui.settings import user_settings

if TYPE_CHECKING:
    import argparse

    from cudal1_core.watch.selection import Selection


def main(options: argparse.Namespace, selection: Selection) -> int:
    """Exit status 0 when the person leaves. Raises UsageError."""
    settings, problems = user_settings()
    theme = options.theme or settings.theme
    settings = replace(settings, ascii=settings.ascii or options.ascii, mouse=settings.mouse and not options.no_mouse)
    with RunLater(lambda: prepared_watch(options, selection, keep_open=True)) as later:
        reference = selection.files[0] if len(selection.files) == 1 and not selection.folders else None
        screen = app.WorkbenchApp(
            later, mode="watch", reference=reference, theme=theme, settings=settings, notices=problems
        )
        if options.theme and theme not in screen.available_themes:
            known = ", ".join(sorted(screen.available_themes))
            raise UsageError(f"There is no theme {theme!r}", f"Known themes: {known}.")
        return app.main(screen, mouse=settings.mouse)
