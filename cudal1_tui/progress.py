"""What a headless run says: one line a verdict on standard error, then a table on standard output."""

from __future__ import annotations

from functools import singledispatchmethod
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from cudal1_core.events import (
    BaselineTimed,
    CandidateWritten,
    DecisionMade,
    Event,
    PolicyLoading,
    RoundFinished,
    RoundStarted,
    RunFinished,
    RunStarted,
    StageStarted,
    TaskDescribed,
    TimingSampled,
    TroubleMet,
    VerdictReached,
)
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cudal1_tui.plain import one_line
from cudal1_tui.words import DASH, interval_text, ms_text, speedup_text

if TYPE_CHECKING:
    from cudal1_core.policies.base import Judged
    from cudal1_core.rounds import Run
    from cudal1_core.verdict import Verdict

PIPE_WIDTH = 120  # columns where standard output is no terminal

_ENDINGS = {
    "done": "The run is done.",
    "budget": "The budget is spent.",
    "stopped": "The run was stopped.",
    "failed": "The run failed.",
}


class Progress:
    """A context in which events are told as they come."""

    def __init__(self, run: Run, errors: Console | None = None, output: Console | None = None) -> None:
        self._run = run
        self._errors = errors or Console(stderr=True, highlight=False, soft_wrap=True)
        self._output = output or Console(highlight=False)
        if output is None and not self._output.is_terminal:
            self._output = Console(highlight=False, width=PIPE_WIDTH)
        self._round = ""
        self._status = self._errors.status("starting")

    def __enter__(self) -> Progress:
        if self._errors.is_terminal:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._status.stop()

    def tell(self, event: Event) -> None:
        self._tell(event)

    @singledispatchmethod
    def _tell(self, event: Event) -> None:
        """Events without words of their own pass in silence."""

    @_tell.register
    def _(self, event: RunStarted) -> None:
        self._now(f"reading {Path(event.reference).name}")

    @_tell.register
    def _(self, event: TaskDescribed) -> None:
        task = event.task
        inputs = ", ".join(task.inputs) or "no inputs"
        self._line(f"{Path(task.path).name}  {task.model}({inputs}) on {task.device_name or task.device}")
        for label in task.labels:
            self._line(f"  label: {label}", "yellow")

    @_tell.register
    def _(self, event: BaselineTimed) -> None:
        self._line(f"  baseline {event.baseline} {ms_text(event.ms)}", "dim")

    @_tell.register
    def _(self, event: RoundStarted) -> None:
        self._round = f"round {event.round}"
        shown = f", shown: {', '.join(event.exemplars)}" if event.exemplars else ""
        self._line(f"{self._round}{shown}", "bold")
        self._now("writing")

    @_tell.register
    def _(self, event: CandidateWritten) -> None:
        self._now(f"{event.candidate.id} written")

    @_tell.register
    def _(self, event: PolicyLoading) -> None:
        self._now(event.what)

    @_tell.register
    def _(self, event: StageStarted) -> None:
        if event.stage != "queued":
            self._now(f"{event.candidate} {event.stage}")

    @_tell.register
    def _(self, event: TimingSampled) -> None:
        self._now(f"{event.candidate} timing {speedup_text(event.speedup)} {interval_text(event.interval)}")

    @_tell.register
    def _(self, event: VerdictReached) -> None:
        judged = self._run.judged[event.candidate]
        verdict = event.verdict
        what = one_line(judged.candidate.title) or ", ".join(judged.candidate.techniques)
        why = "" if verdict.accepted else f": {one_line(verdict.reason or '')}"
        line = f"  {event.candidate} {_word(verdict)} {_speed(verdict)} {what}{why}"
        self._line(" ".join(line.split(" ")), "" if verdict.accepted else "dim")

    @_tell.register
    def _(self, event: RoundFinished) -> None:
        best = f", best {event.best} {speedup_text(event.best_speedup)}" if event.best else ""
        self._line(f"  {event.accepted} accepted, {event.rejected} rejected{best}", "dim")

    @_tell.register
    def _(self, event: DecisionMade) -> None:
        if event.decision == "kept":
            self._line(f"{event.candidate} written to {event.path}")

    @_tell.register
    def _(self, event: TroubleMet) -> None:
        self._line(event.title, "bold red")
        for text in (event.meaning, event.next_step):
            if text:
                self._line(f"  {text}")

    @_tell.register
    def _(self, event: RunFinished) -> None:
        self._line(_ENDINGS[event.reason], "bold")

    def print_result(self, out: Path | None) -> None:
        """The table of every verdict, best first, and where the best went."""
        if self._run.error is not None and not self._run.judged:
            return
        if self._run.judged:
            self._output.print(self._table())
        self._output.print(Text(self._last_word(out)), soft_wrap=True)

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("candidate", "verdict"):
            table.add_column(heading, no_wrap=True)
        for heading in ("speedup", "interval", "time"):
            table.add_column(heading, no_wrap=True, justify="right")
        table.add_column("techniques", overflow="fold")
        for judged in sorted(self._run.judged.values(), key=_rank):
            verdict = judged.verdict
            labels = f" ({', '.join(verdict.labels)})" if verdict.labels else ""
            techniques = ", ".join(judged.candidate.techniques) or judged.candidate.title
            table.add_row(
                judged.candidate.id,
                _word(verdict),
                speedup_text(verdict.speedup),
                interval_text(verdict.speedup_interval) or DASH,
                ms_text(verdict.candidate_ms),
                Text(one_line(techniques) + labels),
            )
        return table

    def _last_word(self, out: Path | None) -> str:
        best, reference = self._run.best, self._run.reference
        if not self._run.judged:
            why = "; nothing is left to try" if self._run.ended == "done" else ""
            return f"{reference.name}: no candidate was judged{why}."
        if best is None:
            return f"Nothing was accepted that could take the place of {reference.name}; nothing was written."
        id, speedup = best.candidate.id, best.verdict.speedup or 0.0
        slower = "" if speedup > 1 else f" No candidate is faster than {reference.name}."
        name = f"{id}, {speedup_text(speedup)}"
        if out is None:
            stored = self._run.folder.source(id)
            where = f" Its source is {_relative(stored)}." if stored else ""
            return f"Best: {name}.{slower}{where} Add --out FILE to have the best written to a file."
        if self._run.decisions.get(id) == "kept":
            return f"Best: {name}, written to {out}.{slower}"
        return f"Best: {name}, not written.{slower}"

    def _line(self, text: str, style: str = "") -> None:
        self._errors.print(Text(one_line(text) if not text.startswith("  ") else "  " + one_line(text)), style=style)

    def _now(self, what: str) -> None:
        self._status.update(Text(one_line(f"{self._round}  {what}")))


def _word(verdict: Verdict) -> str:
    return "accepted" if verdict.accepted else (verdict.category or verdict.verdict).replace("_", " ")


def _speed(verdict: Verdict) -> str:
    if verdict.speedup is None:
        return ""
    return f"{speedup_text(verdict.speedup)} {interval_text(verdict.speedup_interval)}"


def _rank(judged: Judged) -> tuple[bool, float]:
    return not judged.verdict.accepted, -(judged.verdict.speedup or 0.0)


def _relative(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
