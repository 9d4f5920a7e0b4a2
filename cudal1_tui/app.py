"""The workbench as an application: themes, the one screen, and leaving it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from cudal1_core.config import Settings
from textual.app import App, SystemCommand
from textual.theme import Theme

from cudal1_tui import hangup, inks
from cudal1_tui.actions import rebound
from cudal1_tui.screens.workbench import FRAMES, WorkbenchScreen
from cudal1_tui.session import Session
from cudal1_tui.title import TerminalTitle, title

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from cudal1_themes import ThemeFile
    from textual.driver import Driver
    from textual.filter import LineFilter
    from textual.screen import Screen

    from cudal1_tui.bridge import RunHandle
    from cudal1_tui.view import View

DEFAULT_THEME = Settings().theme
SSH_FRAMES = 10  # a second: fewer bytes over a network


class WorkbenchApp(App[None]):
    """Shows one run. `serve` or `main` run it and end the run's children after it."""

    TITLE = "cudal1-tui"
    CSS_PATH = "screens/workbench.tcss"  # the style of a default screen is only read from here
    PAUSE_GC_ON_SCROLL = True

    def __init__(
        self,
        run: RunHandle,
        *,
        session: Session | None = None,
        mode: str = "manual",
        reference: Path | None = None,
        out: Path | None = None,
        theme: str = DEFAULT_THEME,
        settings: Settings | None = None,
        notices: Sequence[str] = (),
    ) -> None:
        """`out` is where accepting writes in place of `<stem>_optimized.py`; `session` is for tests.

        `notices` are told once the screen is there, such as what is wrong in a settings file.
        """
        super().__init__()
        self.animation_level = "none"
        self.session = session or Session(run, mode=mode, reference=reference, out=out)
        self.settings = settings or Settings()
        self.actions, clashes = rebound(self.settings.keys)
        frames = self.settings.frames or (SSH_FRAMES if "SSH_CONNECTION" in os.environ else FRAMES)
        self.terminal_title = TerminalTitle(self._write)
        self.leaving = threading.Event()  # set where nobody is there any more: nothing may wait for a person
        self.workbench = WorkbenchScreen(
            self.session, actions=self.actions, frames=frames, bell=self.settings.bell, told=self._retitle,
            leaving=self.leaving,
        )  # fmt: skip
        self.set_keymap({action.id: ",".join(action.keys) for action in self.actions})
        self.failure: Exception | None = None  # why the run never began
        self._notices = [*notices, *clashes, *self._register_themes()]
        self._drawn_plain: list[LineFilter] = []
        if self.settings.ascii:
            from cudal1_tui.ascii import Ascii

            self._drawn_plain.append(Ascii())
        if theme not in self.available_themes:
            self._notices.append(f"There is no theme {theme!r}; {DEFAULT_THEME} is used.")
            theme = DEFAULT_THEME
        self.theme = theme
        self._styled_with = self.get_css_variables()
        self.stylesheet.set_variables(self._styled_with)  # else everything is read once for Textual's own theme

    def refresh_css(self, animate: bool = True) -> None:
        """Reads the styles again where they depend on what has changed; Textual also asks for that at its start."""
        variables = self.get_css_variables()
        if variables != self._styled_with:
            self._styled_with = variables
            super().refresh_css(animate)

    def get_driver_class(self) -> type[Driver]:
        from textual.drivers.linux_driver import LinuxDriver

        from cudal1_tui.driver import TerminalDriver

        chosen = super().get_driver_class()
        return TerminalDriver if chosen is LinuxDriver else chosen

    def get_default_screen(self) -> Screen[None]:
        return self.workbench

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), *self._drawn_plain]

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return inks.defaults(self.current_theme)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        yield from super().get_system_commands(screen)
        if screen is self.workbench:
            for action in self.actions:
                yield SystemCommand(
                    action.description.capitalize(),
                    action.tooltip,
                    lambda call=action.call: self.call_later(self.run_action, call, self.workbench),
                )

    def on_mount(self) -> None:
        self.set_interval(1, self._reload_themes)
        self.app_resume_signal.subscribe(self, self._resumed)
        for notice in self._notices:
            self.notify(notice, severity="warning", timeout=10, markup=False)

    def on_unmount(self) -> None:
        self.terminal_title.end()

    def on_workbench_screen_never_began(self, message: WorkbenchScreen.NeverBegan) -> None:
        """Nothing can be done about it here; `main` raises it for the command line to tell."""
        self.failure = message.error
        self.exit()

    async def action_quit(self) -> None:
        if not self.session.view.running or self.screen is not self.workbench:
            self.exit()
            return
        from cudal1_tui.screens.questions import ask_to_quit

        def answered(leave: bool | None) -> None:
            if leave:
                self.exit()

        self.push_screen(ask_to_quit(), answered)

    def _resumed(self, _app: object) -> None:
        """Paints everything: the terminal has shown other things in the meantime."""
        self.terminal_title.show_again()
        self.refresh()

    def _retitle(self, view: View) -> None:
        self.terminal_title.show(title(view))

    def _write(self, text: str) -> None:
        if self._driver is not None:
            self._driver.write(text)

    def _reload_themes(self) -> None:
        """Takes in a theme of the person's own as soon as its file is saved."""
        if _dates(self._own_themes) == self._seen:
            return
        for notice in self._register_themes():
            self.notify(notice, severity="warning", timeout=10, markup=False)
        if self.theme not in self.available_themes:
            self.theme = DEFAULT_THEME
        self.mutate_reactive(WorkbenchApp.theme)  # the same name, other colours

    def _register_themes(self) -> list[str]:
        """Ours and the person's own; returns a sentence for each that could not be used."""
        from cudal1_themes import bundled_folder, load_folder
        from platformdirs import user_config_path

        notices: list[str] = []
        self._own_themes = user_config_path("cudal1-tui") / "themes"
        self._seen = _dates(self._own_themes)
        for folder in (bundled_folder(), self._own_themes):
            themes, bad = load_folder(folder)
            notices += [f"Theme {problem.path.name} was left out: {problem.reason}" for problem in bad]
            for theme in themes:
                self.register_theme(as_textual(theme))
        return notices


def _dates(folder: Path) -> dict[str, int]:
    """When each theme file of a folder was changed, in nanoseconds."""
    dates = {}
    for path in folder.glob("*.toml"):
        with contextlib.suppress(OSError):  # gone in between
            dates[path.name] = path.stat().st_mtime_ns
    return dates


def as_textual(theme: ThemeFile) -> Theme:
    """A theme file as Textual knows it."""
    values: dict[str, Any] = dict(theme.colours)
    return Theme(name=theme.name, dark=theme.dark, variables=theme.variables, **values)


async def serve(app: WorkbenchApp, *, mouse: bool = True, headless: bool = False) -> None:
    """Runs the workbench; the terminal is given back first, then the run and its children are ended."""
    _trust_the_terminals_size()
    asked = hangup.heard(lambda status: app.exit(return_code=status), app.leaving)
    with contextlib.nullcontext() if headless else asked:
        try:
            await app.run_async(mouse=mouse, headless=headless)
        finally:
            await app.workbench.pump.stop()


def _trust_the_terminals_size() -> None:
    """COLUMNS and LINES, left in the environment by some shells and by readline, hide the real size and its changes."""
    if sys.__stdout__ is not None and sys.__stdout__.isatty():
        for name in ("COLUMNS", "LINES"):
            os.environ.pop(name, None)


def main(app: WorkbenchApp, *, mouse: bool = True) -> int:
    """Runs the workbench to its end; returns the exit status. Raises what kept the run from beginning."""
    asyncio.run(serve(app, mouse=mouse))
    if app.failure is not None:
        raise app.failure
    return app.return_code or 0
