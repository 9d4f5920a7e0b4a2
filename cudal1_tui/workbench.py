"""Starts the workbench over a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudal1_core.errors import UsageError, exit_status

from cudal1_tui import app
from cudal1_tui.later import RunLater

if TYPE_CHECKING:
    import argparse
    from contextlib import AbstractContextManager

    from cudal1_core.rounds import Run


def main(options: argparse.Namespace) -> int:
    """Exit status 0 when the person leaves, 2 or 3 when the run failed. Raises UsageError."""
    theme = options.theme or app.DEFAULT_THEME
    with RunLater(lambda: prepared_run(options)) as later:
        screen = app.WorkbenchApp(later, reference=options.module, out=options.out, theme=theme)
        if theme not in screen.available_themes:
            known = ", ".join(sorted(screen.available_themes))
            raise UsageError(f"There is no theme {theme!r}", f"Known themes: {known}.")
        if status := app.main(screen):
            return status
        run = later.run
        return exit_status(run.error) if run is not None and run.error is not None else 0


def prepared_run(options: argparse.Namespace) -> AbstractContextManager[Run]:
    """`start.prepared_run`, imported when it is asked for: it costs as much as half a first paint."""
    from cudal1_tui import start

    return start.prepared_run(options)
