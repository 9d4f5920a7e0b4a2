"""Starts the workbench over a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudal1_core.errors import UsageError, exit_status

from cudal1_tui import app
from cudal1_tui.start import prepared_run

if TYPE_CHECKING:
    import argparse


def main(options: argparse.Namespace) -> int:
    """Exit status 0 when the person leaves, 2 or 3 when the run failed. Raises UsageError."""
    with prepared_run(options) as run:
        theme = options.theme or app.DEFAULT_THEME
        screen = app.WorkbenchApp(run, reference=options.module, out=options.out, theme=theme)
        if theme not in screen.available_themes:
            known = ", ".join(sorted(screen.available_themes))
            raise UsageError(f"There is no theme {theme!r}", f"Known themes: {known}.")
        if status := app.main(screen):
            return status
        return exit_status(run.error) if run.error is not None else 0
