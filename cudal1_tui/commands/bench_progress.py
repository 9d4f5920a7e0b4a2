"""What a bench says while it runs: a line a row, and at a terminal a bar with the time left."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cudal1_core.events import Event, StageStarted, TimingSampled
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cudal1_tui.plain import one_line
from cudal1_tui.words import interval_text, speedup_text

if TYPE_CHECKING:
    from types import TracebackType

    from cudal1_core.bench.row import Row
    from cudal1_core.bench.suites import Subject

REFRESH = 4  # times a second
PIPE_WIDTH = 160  # columns where standard error is no terminal


class BenchProgress:
    """A context, and the listener of the lanes. `total` counts tasks, and candidates where they are known."""

    def __init__(self, total: int, kept: int, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        if console is None and not self._console.is_terminal:
            self._console = Console(stderr=True, highlight=False, width=PIPE_WIDTH)
        self._total = total
        self._kept = kept  # had a row already
        self._done = 0
        self._timed = 0  # of those, what took time
        self._start = self._last = time.monotonic()  # of the run, and of its last row
        self._lanes: dict[int, tuple[str, str]] = {}
        self._counts = {"accepted": 0, "rejected": 0, "unjudgeable": 0}
        self._live = Live(get_renderable=self._draw, console=self._console, refresh_per_second=REFRESH, transient=True)

    def __enter__(self) -> BenchProgress:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def began(self, lane: int, subject: Subject, candidate: str) -> None:
        self._lanes[lane] = (" ".join(part for part in (subject.task, candidate) if part), "reading the reference")

    def happened(self, lane: int, event: Event) -> None:
        name, what = self._lanes.get(lane, ("", ""))
        if isinstance(event, StageStarted):
            what = event.stage
        elif isinstance(event, TimingSampled):
            what = f"timing {speedup_text(event.speedup)} {interval_text(event.interval)}"
        self._lanes[lane] = (name, what)

    def idle(self, lane: int) -> None:
        self._lanes.pop(lane, None)

    def finished(self, rows: list[Row], steps: int) -> None:
        """Rows that came, and how far they bring the whole."""
        self._done += steps
        if any(row.seconds for row in rows):
            self._timed += steps
            self._last = time.monotonic()
        for row in rows:
            self._counts[row.verdict.verdict] += 1
            self._print(row)

    def left_s(self) -> float | None:
        """Seconds by the pace up to the last row, counting down; None before there is a pace."""
        if not self._timed:
            return None
        pace = (self._last - self._start) / self._timed
        return max(0.0, pace * (self._total - self._kept - self._done) - (time.monotonic() - self._last))

    def _print(self, row: Row) -> None:
        width = len(str(self._total))
        place = f"{self._kept + self._done:{width}}/{self._total}"
        left = "" if self._console.is_terminal else f" {_left(self.left_s())}"
        line = Text(f"{place}{left} ", style="dim")
        line.append(row_text(row), style="" if row.verdict.accepted else "yellow" if row.unjudged else "dim")
        line.truncate(self._console.width, overflow="ellipsis")
        self._console.print(line, no_wrap=True, overflow="ellipsis", crop=True)

    def _draw(self) -> RenderableType:
        grid = Table.grid(padding=(0, 1), expand=True)
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1)
        grid.add_column(no_wrap=True)
        done = self._kept + self._done
        counts = f"{self._counts['accepted']} accepted, {self._counts['rejected']} rejected"
        bar = ProgressBar(total=max(1, self._total), completed=done)
        grid.add_row(Text(f"{done}/{self._total} {counts}"), bar, Text(_left(self.left_s())))
        lines = [Text(one_line(f"  {name}  {what}"), no_wrap=True, overflow="ellipsis") for name, what in self._shown()]
        return Group(grid, *lines)

    def _shown(self) -> list[tuple[str, str]]:
        most = max(1, min(8, self._console.height // 3))
        return [self._lanes[lane] for lane in sorted(self._lanes)][:most]


def row_text(row: Row) -> str:
    """`L2/96 accepted 1.28x [1.27–1.29] claimed 368x`, or why not."""
    verdict = row.verdict
    word = "accepted" if verdict.accepted else (verdict.category or verdict.verdict).replace("_", " ")
    name = "" if row.candidate in ("", "release") else row.candidate
    claimed = f"claimed {row.claimed['eager']:.2f}x" if "eager" in row.claimed else ""
    parts: list[str] = [row.task, name, word]
    if verdict.accepted:
        parts += [speedup_text(verdict.speedup), interval_text(verdict.speedup_interval), claimed, *verdict.labels]
    else:
        parts.append(row.failed or verdict.reason or "")
    return " ".join(one_line(part) for part in parts if part)


def _left(seconds: float | None) -> str:
    if seconds is None:
        return "--:-- left"
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d} left" if hours else f"{rest // 60:02d}:{rest % 60:02d} left"
