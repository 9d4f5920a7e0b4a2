"""Starts the workbench over a run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cudal1_core.errors import UsageError, exit_status

from cudal1_tui import app
from cudal1_tui.later import RunLater
from cudal1_tui.settings import user_settings

if TYPE_CHECKING:
    import argparse
    from contextlib import AbstractContextManager

    from cudal1_core.rounds import Run


def main(options: argparse.Namespace) -> int:
    """Exit status 0 when the person leaves, 2 or 3 when the run failed. Raises UsageError."""
    settings, problems = user_settings()
    theme = options.theme or settings.theme
    settings = replace(settings, ascii=settings.ascii or options.ascii, mouse=settings.mouse and not options.no_mouse)
    with RunLater(lambda: prepared_run(options)) as later:
        screen = app.WorkbenchApp(
            later, reference=options.module, out=options.out, theme=theme, settings=settings, notices=problems
        )
        if options.theme and theme not in screen.available_themes:
            known = ", ".join(sorted(screen.available_themes))
            raise UsageError(f"There is no theme {theme!r}", f"Known themes: {known}.")
        if status := app.main(screen, mouse=settings.mouse):
            return status
        run = later.run
        return exit_status(run.error) if run is not None and run.error is not None else 0


def prepared_run(options: argparse.Namespace) -> AbstractContextManager[Run]:
    """`start.prepared_run`, imported when it is asked for: it costs as much as half a first paint."""
    from cudal1_tui import start

    return start.prepared_run(options)
