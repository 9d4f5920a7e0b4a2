"""The workbench: lays the panes out, draws the session's view in them, and turns keys into its actions."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from textual.app import SuspendNotSupported
from textual.binding import Binding
from textual.containers import Container
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Static

from cudal1_tui.actions import ACTIONS, DECISIONS, Action, key_name
from cudal1_tui.bridge import Pump
from cudal1_tui.decisions import Note
from cudal1_tui.views import NO_PLOT, PAGES
from cudal1_tui.widgets.banner import Banner
from cudal1_tui.widgets.candidate_list import CandidateList
from cudal1_tui.widgets.code_stream import CodeMode, CodeStream
from cudal1_tui.widgets.evidence import correctness, speed, summary
from cudal1_tui.widgets.key_line import KeyLine
from cudal1_tui.widgets.line import Line
from cudal1_tui.widgets.now_line import NowLine
from cudal1_tui.widgets.reference_pane import ReferencePane
from cudal1_tui.widgets.status_line import StatusLine
from cudal1_tui.widgets.text_pane import TextPane
from cudal1_tui.widgets.titles import subject, titles
from cudal1_tui.widgets.watch_line import WatchLine
from cudal1_tui.words import speedup_text

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from cudal1_core.events import MachineSampled
    from textual.app import ComposeResult
    from textual.dom import DOMNode
    from textual.events import Resize
    from textual.timer import Timer

    from cudal1_tui.machine import Watch
    from cudal1_tui.session import Session, Taken
    from cudal1_tui.view import Direction, Row, View

PaneView = Literal["code", "diff", "evidence", "progress", "techniques", "decisions", "prompt", "answer", "output"]
Against = Literal["reference", "best", "marked"]
COLUMNS = 100  # from this width on there are two columns
WIDE = 200  # and three
ORDER = {  # in which panes are read and tabbed through
    "stacked": ("reference", "candidates", "code", "page", "plot", "correctness", "speed"),
    "columns": ("reference", "code", "page", "candidates", "plot", "correctness", "speed"),
    "wide": ("candidates", "reference", "code", "page", "plot", "correctness", "speed"),
}
FRAMES = 30  # a second, while text streams
ZOOM = "-zoomed"


class WorkbenchScreen(Screen[None]):
    """Everything is drawn from `session.view`; nothing else is remembered but what a person looks at."""

    AUTO_FOCUS = "#candidates"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-stacked"), (COLUMNS, "-columns"), (WIDE, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (15, "-low"), (20, "-short"), (30, "-medium"), (40, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar = [
        Binding(",".join(action.keys), action.call, action.description, id=action.id, tooltip=action.tooltip)
        for action in ACTIONS
    ]

    @dataclass
    class NeverBegan(Message):
        """The run could not be put together."""

        error: Exception

    def __init__(
        self,
        session: Session,
        *,
        actions: tuple[Action, ...] = ACTIONS,
        frames: int = FRAMES,
        bell: bool = True,
        told: Callable[[View], None] = lambda _view: None,
        leaving: threading.Event,
    ) -> None:
        """`actions` with the keys in force; `frames` a second while text streams; `told` gets each view drawn.

        `leaving` is set where nobody is there any more, which ends waiting for an editor.
        """
        super().__init__()
        self._actions = actions
        self._keys = {action.id: key_name(action.keys[0]) for action in actions}
        self._rate = frames
        self._bell = bell
        self._told = told
        self._leaving = leaving
        self.session = session
        self.pump = Pump(session.run, self._wake, self._failed)
        self.pane_view: PaneView = "code"
        self.against: Against = "reference"
        self.marked: str | None = None
        self._drawn: View | None = None
        self._titled: tuple[object, ...] = ()  # what the titles were made from
        self._frames: Timer | None = None
        self._drain_due = False
        self._watch: Watch | None = None

    def compose(self) -> ComposeResult:
        yield StatusLine(id="status")
        yield NowLine(id="now")
        yield WatchLine(id="watch")
        yield Banner(id="banner")
        with Container(id="body"):
            yield ReferencePane(id="reference", classes="pane")
            yield CodeStream(id="code", classes="pane")
            yield TextPane("page", id="page", classes="pane")
            yield CandidateList(id="candidates", classes="pane")
            yield TextPane("progress", id="plot", classes="pane")
            yield TextPane("correctness", id="correctness", classes="pane")
            yield TextPane("speed", id="speed", classes="pane")
        yield Line(id="summary")
        yield Static("Enlarge the terminal to 60 x 15 or more. The run goes on.", id="too-small")
        yield KeyLine(self._actions, id="keys")

    def on_mount(self) -> None:
        self._frames = self.set_interval(1 / self._rate, self.drain, pause=True)
        self.set_interval(1, self._tick)
        self.draw()
        self.call_after_refresh(self.pump.start)  # the first paint comes before the run starts anything

    def on_resize(self, event: Resize) -> None:
        """Puts the panes into the order of the layout."""
        if event.size != self.app.size:
            event.prevent_default()  # overtaken by a newer size; laying it out would bring both back for ever
            return
        width = event.size.width
        order = ORDER["stacked" if width < COLUMNS else "columns" if width < WIDE else "wide"]
        body = self.query_one("#body")
        if tuple(child.id for child in body.children) != order:
            body.sort_children(key=lambda child: order.index(child.id or ""))
        self._drawn = None
        self.call_after_refresh(self.draw)

    def drain(self) -> None:
        """Take in what the run has told since, and draw it."""
        self._drain_due = False
        events = self.pump.take()
        if events:
            before = self.session.view
            note = self.session.receive(events)
            self._say(note)
            self._call_the_person(before)
        elif self._frames is not None:
            self._frames.pause()  # no frames while nothing changes

    def draw(self) -> None:
        """Bring every pane up to date; panes draw only what changed."""
        if not self.is_mounted:
            return
        view, drawn = self.session.view, self._drawn
        self._drawn = view
        row = view.current
        self._draw_status()
        if drawn is None or (drawn.task, drawn.baselines, drawn.ending) != (view.task, view.baselines, view.ending):
            self.query_one(ReferencePane).show(view, self.session.reference_source)
        if drawn is None or drawn.trouble is not view.trouble:
            self.query_one(Banner).show(view.trouble)
        if drawn is None or drawn.watch is not view.watch:
            self.query_one(WatchLine).show(view)
        self.query_one(CandidateList).show(view)
        mode: CodeMode = "diff" if self.pane_view == "diff" else "code"
        before, name = self._before()
        self.query_one(CodeStream).show(row, before, mode, name)
        self._draw_page()
        self._draw_titles(row)
        checks, timing = self.query_one("#correctness", TextPane), self.query_one("#speed", TextPane)
        checks.show(correctness(row, view, checks.room))
        self._draw_plot()
        timing.show(speed(row, view, timing.room))
        self.query_one("#summary", Line).put(summary(row, view))

    def action_accept(self) -> None:
        self._accept(None)

    def action_reject(self) -> None:
        self._say(self.session.mark("dismissed"))

    def action_feed(self) -> None:
        self._say(self.session.mark("fed"))

    def action_undo(self) -> None:
        self._say(self.session.undo())

    def action_pause(self) -> None:
        self._say(self.session.toggle_pause())

    def action_more(self) -> None:
        self._say(self.session.more())
        self.pump.start()

    def action_train(self) -> None:
        self._say(self.session.train())

    def action_move(self, direction: Direction) -> None:
        self.session.move(direction)
        self.draw()

    def action_best(self) -> None:
        self.session.select(self.session.view.best)
        self.draw()

    def action_diff(self) -> None:
        self.action_view("code" if self.pane_view == "diff" else "diff")

    def action_against(self) -> None:
        """Takes the next thing to compare with; what is not there is passed over."""
        view = self.session.view
        there: dict[Against, bool] = {
            "reference": True,
            "best": view.row(view.best) is not None,
            "marked": view.row(self.marked) is not None,
        }
        kinds = [kind for kind in get_args(Against) if there[kind]]
        if self.pane_view == "diff":
            at = kinds.index(self.against) if self.against in kinds else -1
            self.against = kinds[(at + 1) % len(kinds)]
        self.action_view("diff")
        self._say(Note(f"Compared with the {self._before()[1]}."))

    def action_mark(self) -> None:
        row = self.session.view.current
        if row is None:
            self._say(Note("No candidate is selected.", "warning"))
            return
        self.marked = None if self.marked == row.id else row.id
        self.against = "marked" if self.marked else "reference"
        said = f"{row.id} is marked; d compares the selected candidate with it." if self.marked else "No mark is set."
        self._say(Note(said))

    def action_view(self, pane_view: PaneView) -> None:
        assert pane_view in get_args(PaneView)
        self.pane_view = pane_view
        self.set_class(pane_view == "evidence", "-evidence")
        self.set_class(pane_view in PAGES, "-page")
        self._shrink()
        self._redraw_soon()

    def action_enlarge(self) -> None:
        pane = self._focused_pane
        if not self._shrink() and pane is not None:
            self.add_class(ZOOM)
            pane.add_class(ZOOM)
        self._redraw_soon()

    def action_back(self) -> None:
        if not self._shrink():
            self.session.put_away()
        self._redraw_soon()

    def action_copy(self) -> None:
        from cudal1_tui.clipboard import copy

        row = self.session.view.current
        if row is None:
            self.notify("No candidate is selected.", severity="warning", markup=False)
            return
        folder = Path(self.session.view.folder) if self.session.view.folder else None
        self.notify(str(copy(row.source, self.app.copy_to_clipboard, folder)), markup=False)

    def action_edit(self) -> None:
        from cudal1_tui.editor import edit_copy

        row = self.session.view.current
        if row is None or not row.source:
            self._say(Note("There is no code to open.", "warning"))
            return
        folder = Path(self.session.view.folder) if self.session.view.folder else None
        try:
            with self.app.suspend():
                note = edit_copy(row.id, row.source, folder, self.session.view.reference, self._leaving)
        except SuspendNotSupported:
            note = Note("This terminal cannot be handed to an editor.", "warning")
        self._say(note)

    def action_export(self) -> None:
        from cudal1_tui import report

        view = self.session.view
        folder = Path(view.folder) if view.folder else Path.cwd()
        try:
            paths = [report.write(view, folder / f"report.{kind}") for kind in ("md", "html")]
        except OSError as error:
            self._say(Note(f"The report cannot be written: {error}", "error"))
            return
        self._say(Note(f"Written: {paths[0]} and {paths[1].name}"))

    def action_help(self) -> None:
        from cudal1_tui.screens.help import HelpScreen

        pane = self._focused_pane
        about = self.pane_view if pane is None or pane.id in ("code", "page") else str(pane.id)
        self.app.push_screen(HelpScreen(self._actions, about))

    def on_candidate_list_picked(self, message: CandidateList.Picked) -> None:
        self.session.select(message.candidate)
        self.draw()

    async def on_key_line_chosen(self, message: KeyLine.Chosen) -> None:
        await self.run_action(message.call)

    def _accept(self, taken: Taken | None) -> None:
        task = self.session.view.task
        try:
            self._say(self.session.accept(taken))
        except FileExistsError:
            from cudal1_tui.screens.questions import ask_about_file

            assert task is not None
            chosen = self.session.view.selected

            def answered(answer: Taken | None) -> None:
                if answer is not None:
                    self.session.select(chosen)
                    self._accept(answer)

            self.app.push_screen(ask_about_file(self.session.target(task)), answered)

    def _say(self, note: Note | None) -> None:
        if note is not None:
            self.app.clear_notifications()  # one at a time: they lie over the work
            self.notify(note.text, severity=note.severity, markup=False)
        self.draw()

    @property
    def _focused_pane(self) -> DOMNode | None:
        nodes = self.focused.ancestors_with_self if self.focused is not None else ()
        return next((node for node in nodes if node.has_class("pane")), None)

    def _shrink(self) -> bool:
        """False where no pane is enlarged."""
        enlarged = self.has_class(ZOOM)
        for node in (self, *self.query(f".{ZOOM}")):
            node.remove_class(ZOOM)
        return enlarged

    def _redraw_soon(self) -> None:
        """Now, and once the panes have their new sizes."""
        self.draw()
        self.call_after_refresh(self.draw)

    def _before(self) -> tuple[str, str]:
        """What a difference starts from, as text, and its name."""
        view = self.session.view
        row = view.row({"best": view.best, "marked": self.marked}.get(self.against))
        return (row.source, f"{self.against} {row.id}") if row else (self.session.reference_source, "reference")

    def _draw_plot(self) -> None:
        pane = self.query_one("#plot", TextPane)
        if pane.display and not self.session.view.rows:
            pane.show(Content.styled(NO_PLOT, "$muted"))
        elif pane.display:
            from cudal1_tui.plot import plot

            pane.show(Content("\n").join(plot(self.session.view, pane.room, pane.scrollable_content_region.height)))

    def _draw_page(self) -> None:
        if self.pane_view in PAGES:
            from cudal1_tui.pages import page

            pane = self.query_one("#page", TextPane)
            pane.show(page(self.pane_view, self.session.view, pane.room, pane.scrollable_content_region.height))

    def _draw_titles(self, row: Row | None) -> None:
        panes = self.query_one("#code"), self.query_one("#page")
        width = panes[self.pane_view in PAGES].outer_size.width
        stacked, about = self.has_class("-stacked"), subject(row, self.pane_view, self._compared)
        made_from = (stacked, width, self.pane_view, about)
        if made_from == self._titled:  # setting a title draws its whole pane again
            return
        self._titled = made_from
        drawn = titles(about, self.pane_view, stacked=stacked, width=width)
        for pane in panes:
            pane.border_title, pane.border_subtitle = drawn.head, drawn.foot

    @property
    def _compared(self) -> str:
        """What a difference starts from, with its speedup: `best c03 2.31x`."""
        view = self.session.view
        row = view.row({"best": view.best, "marked": self.marked}.get(self.against))
        return f"{self._before()[1]} {speedup_text(row.speedup)}" if row else "reference"

    def _draw_status(self) -> None:
        view, paused = self.session.view, self.session.run.paused
        self._told(view)
        self.query_one(StatusLine).show(view, mode=self.session.mode, paused=paused, seconds=self.session.seconds)
        self.query_one(NowLine).show(view, paused=paused, wall=self.session.wall, keys=self._keys)
        idle = set() if view.current else set(DECISIONS)
        if view.current is not None and (view.current.verdict is None or not view.current.verdict.accepted):
            idle.add("accept")
        if view.current is not None and view.current.verdict is None:
            idle.add("feed")
        if not view.running:
            idle.add("pause")
        names = {
            "pause": "resume" if paused else "pause",
            "diff": "code" if self.pane_view == "diff" else "diff",
        }
        extra = frozenset({"more"} if view.ending in ("done", "budget") else ())
        self.query_one(KeyLine).show(idle=frozenset(idle), names=names, extra=extra)

    def _tick(self) -> None:
        self._watch_machine()
        if self.session.view.running:
            self._draw_status()

    def _call_the_person(self, before: View) -> None:
        """The bell where a run has ended or met trouble since `before`."""
        view = self.session.view
        ended = before.ending is None and view.ending is not None
        if self._bell and (ended or (view.trouble is not None and view.trouble is not before.trouble)):
            self.app.bell()

    def _watch_machine(self) -> None:
        """Watched while a run goes on; nothing wakes up when it is over."""
        view = self.session.view
        if view.running and self._watch is None and view.task is not None:
            import asyncio

            from cudal1_tui.machine import Watch

            loop = asyncio.get_running_loop()
            kind, _, index = view.task.device.partition(":")

            def tell(sample: MachineSampled) -> None:
                with contextlib.suppress(RuntimeError):  # the screen has gone in the meantime
                    loop.call_soon_threadsafe(self._sampled, sample)

            self._watch = Watch(tell, int(index or 0) if kind == "cuda" else None)
            self._watch.start()
        elif not view.running and self._watch is not None:
            self._watch.stop()
            self._watch = None

    def _sampled(self, sample: MachineSampled) -> None:
        self.session.receive([sample])
        if self.is_mounted:
            self._draw_status()

    def on_unmount(self) -> None:
        if self._watch is not None:
            self._watch.stop()

    def _wake(self, can_wait: bool) -> None:
        if can_wait and self._frames is not None:
            self._frames.resume()
        elif not self._drain_due:
            self._drain_due = True
            self.call_later(self.drain)

    def _failed(self, error: Exception) -> None:
        self.drain()
        if self.session.view.started_at is None:
            self.post_message(self.NeverBegan(error))
            return
        self.session.trouble(error)
        self.call_later(self.draw)
