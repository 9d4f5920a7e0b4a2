"""What a training says: a line for what matters on standard error, and at a terminal a bar with the time left."""

from __future__ import annotations

import sys
from functools import singledispatchmethod
from types import TracebackType

from cudal1_core.events import (
    CandidateWritten,
    Event,
    RunFinished,
    RunStarted,
    StageStarted,
    TaskDescribed,
    TokenArrived,
    TrainingPhase,
    TrainingReported,
    TrainingSaved,
    TrainingStarted,
    TrainingStepped,
    TroubleMet,
    VerdictReached,
)
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cudal1_tui.plain import one_line
from cudal1_tui.words import speedup_text

REFRESH = 4  # times a second
PIPE_WIDTH = 160  # columns where standard error is no terminal
TOLD = ("loss", "reward", "right", "speedup", "kl", "trials")  # metrics that a line has room for, in order
ENDINGS = {"done": "The training is done.", "stopped": "The training was stopped; the same command goes on.",
           "failed": "The training is not done; what is done is kept."}  # fmt: skip


class TrainProgress:
    """A context in which events are told as they come."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        if console is None and not self._console.is_terminal:
            self._console = Console(stderr=True, highlight=False, width=PIPE_WIDTH)
        self.report = ""
        self.finished = False  # the trainer said its last word
        self._folder = ""
        self._stage = ""
        self._what = "starting"
        self._now = ""
        self._step, self._total = 0, 0
        self._left: float | None = None
        self._accepted = self._judged = 0
        self._live = Live(get_renderable=self._draw, console=self._console, refresh_per_second=REFRESH, transient=True)

    def __enter__(self) -> TrainProgress:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def tell(self, event: Event) -> None:
        self._tell(event)

    def end(self, last_words: str) -> None:
        """The report on standard output; what the log says where the trainer ended without a word."""
        if last_words:
            self._line("The trainer ended without a word; the last of its log:", "bold red")
            self._console.print(Text(last_words), style="dim")
        print_report(self.report)

    @singledispatchmethod
    def _tell(self, event: Event) -> None:
        """Events without words of their own pass in silence."""

    @_tell.register
    def _(self, event: RunStarted) -> None:
        self._folder = event.folder

    @_tell.register
    def _(self, event: TrainingStarted) -> None:
        stages = ", ".join(event.stages)
        self._line(
            f"{event.model}: {stages} on {event.tasks} tasks, {event.held_out} held out, kept in {event.folder}", "bold"
        )

    @_tell.register
    def _(self, event: TrainingPhase) -> None:
        self._stage, self._what = event.stage, event.what
        self._step, self._total, self._left = event.done, event.total, None
        self._accepted = self._judged = 0
        self._now = ""
        begun = f", {event.done} of {event.total} done before" if event.done else ""
        self._line(f"{event.stage}  {event.what}{begun}", "bold")

    @_tell.register
    def _(self, event: TrainingStepped) -> None:
        self._step, self._total, self._left = event.step, event.total, event.left_s
        self._now = _metrics_text(event.metrics)
        if not self._console.is_terminal or event.stage in ("sft", "rl"):
            self._line(f"  {event.stage} {event.step}/{event.total}  {self._now}{_left(event.left_s)}")

    @_tell.register
    def _(self, event: TrainingSaved) -> None:
        self._line(f"  checkpoint of {event.stage} at step {event.step}", "dim")

    @_tell.register
    def _(self, event: TaskDescribed) -> None:
        self._now = event.task.path.rpartition("/")[2]

    @_tell.register
    def _(self, event: TokenArrived) -> None:
        self._now = f"{event.candidate} writing"

    @_tell.register
    def _(self, event: CandidateWritten) -> None:
        self._now = f"{event.candidate.id} written"

    @_tell.register
    def _(self, event: StageStarted) -> None:
        self._now = f"{event.candidate} {event.stage}"

    @_tell.register
    def _(self, event: VerdictReached) -> None:
        verdict = event.verdict
        self._judged += 1
        self._accepted += verdict.accepted
        if verdict.accepted:
            labels = f" {', '.join(verdict.labels)}" if verdict.labels else ""
            self._line(f"  {event.candidate} accepted {speedup_text(verdict.speedup)}{labels}")
        elif verdict.category == "dishonest":
            self._line(f"  {event.candidate} dishonest: {verdict.reason}", "yellow")
        elif not self._console.is_terminal:
            self._line(f"  {event.candidate} {(verdict.category or verdict.verdict).replace('_', ' ')}", "dim")

    @_tell.register
    def _(self, event: TroubleMet) -> None:
        self._line(event.title, "bold red")
        for text in (event.meaning, event.next_step):
            if text:
                self._line(f"  {text}")

    @_tell.register
    def _(self, event: TrainingReported) -> None:
        self.report = event.text

    @_tell.register
    def _(self, event: RunFinished) -> None:
        self.finished = True
        if self._folder:
            self._line(ENDINGS.get(event.reason, event.reason), "bold")

    def _line(self, text: str, style: str = "") -> None:
        indent = "  " if text.startswith("  ") else ""
        self._console.print(Text(indent + one_line(text)), style=style)

    def _draw(self) -> RenderableType:
        grid = Table.grid(padding=(0, 1), expand=True)
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1)
        grid.add_column(no_wrap=True)
        counts = f" {self._accepted}/{self._judged} right" if self._judged else ""
        bar = ProgressBar(total=max(1, self._total), completed=self._step)
        grid.add_row(Text(f"{self._stage} {self._step}/{self._total}{counts}"), bar, Text(_left(self._left).strip()))
        return Group(grid, Text(one_line(f"{self._what}  {self._now}"), no_wrap=True, overflow="ellipsis", style="dim"))


def print_report(text: str) -> None:
    """Markdown, drawn at a terminal and as it is in a pipe."""
    if not text:
        return
    console = Console(highlight=False)
    if console.is_terminal and text.startswith("# ") and "\n## " in text:
        from rich.markdown import Markdown

        console.print(Markdown(text))
    else:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        sys.stdout.flush()


def _metrics_text(metrics: dict[str, float]) -> str:
    return " ".join(f"{name} {metrics[name]:.4g}" for name in TOLD if name in metrics)


def _left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    hours, rest = divmod(round(seconds), 3600)
    return f"  {hours}:{rest // 60:02d}:{rest % 60:02d} left"
