"""What a headless run says: one line a verdict on standard error, then a table on standard output."""

from __future__ import annotations

import time
from functools import singledispatchmethod
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from cudal1_core.events import (
    AcceptedJudged,
    BaselineTimed,
    CandidateWritten,
    DecisionMade,
    Event,
    PolicyLoading,
    ReferenceSeen,
    RoundFinished,
    RoundStarted,
    RunFinished,
    RunStarted,
    StageStarted,
    TaskDescribed,
    TimingSampled,
    TroubleMet,
    VerdictReached,
    WatchStarted,
)
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cudal1_tui.plain import one_line
from cudal1_tui.words import DASH, STANDINGS, interval_text, ms_text, speedup_text

if TYPE_CHECKING:
    from cudal1_core.candidate import Candidate
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
    """A context in which events are told as they come; `run` is None where the result is not printed."""

    def __init__(self, run: Run | None, errors: Console | None = None, output: Console | None = None) -> None:
        self._run = run
        self._candidates: dict[str, Candidate] = {}  # of the run that is told
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
        self._round = ""
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
        self._candidates[event.candidate.id] = event.candidate
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
        candidate, verdict = self._candidates[event.candidate], event.verdict
        what = one_line(candidate.title) or ", ".join(candidate.techniques)
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
        self._now("waiting for a change")

    @_tell.register
    def _(self, event: WatchStarted) -> None:
        how = "" if event.how == "inotify" else f", by {event.how}"
        found = "1 reference" if event.references == 1 else f"{event.references} references"
        self._line(f"watching {', '.join(event.paths)}: {found}{how}", "bold")
        self._now("waiting for a change")

    @_tell.register
    def _(self, event: ReferenceSeen) -> None:
        at = time.strftime("%H:%M:%S", time.localtime(event.at))
        if event.state == "changed":
            self._line(f"{at} {Path(event.path).name} was saved", "bold")
        elif event.state == "unchanged":
            self._line(f"{at} {Path(event.path).name}: {event.message}", "dim")
        else:
            self._line(f"{at} {event.message}; waiting", "yellow")

    @_tell.register
    def _(self, event: AcceptedJudged) -> None:
        was = f", was {speedup_text(event.was)}" if event.was is not None else ""
        figure = f" {speedup_text(event.speedup)} {interval_text(event.interval)}" if event.speedup is not None else ""
        why = f": {one_line(event.reason)}" if event.reason else ""
        name = Path(event.path).name
        self._line(
            f"  {name}: {STANDINGS[event.state]}{figure}{was}{why}", "bold red" if event.state == "wrong" else ""
        )

    def print_result(self, out: Path | None) -> None:
        """The table of every verdict, best first, and where the best went; needs a run."""
        assert self._run is not None
        if self._run.error is not None and not self._run.judged:
            return
        if self._run.judged:
            self._output.print(self._table(self._run))
        self._output.print(Text(self._last_word(self._run, out)), soft_wrap=True)

    def _table(self, run: Run) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("candidate", "verdict"):
            table.add_column(heading, no_wrap=True)
        for heading in ("speedup", "interval", "time"):
            table.add_column(heading, no_wrap=True, justify="right")
        table.add_column("techniques", overflow="fold")
        for judged in sorted(run.judged.values(), key=_rank):
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

    def _last_word(self, run: Run, out: Path | None) -> str:
        best, reference = run.best, run.reference
        if not run.judged:
            why = "; nothing is left to try" if run.ended == "done" else ""
            return f"{reference.name}: no candidate was judged{why}."
        if best is None:
            return f"Nothing was accepted that could take the place of {reference.name}; nothing was written."
        id, speedup = best.candidate.id, best.verdict.speedup or 0.0
        slower = "" if speedup > 1 else f" No candidate is faster than {reference.name}."
        name = f"{id}, {speedup_text(speedup)}"
        if out is None:
            stored = run.folder.source(id)
            where = f" Its source is {_relative(stored)}." if stored else ""
            return f"Best: {name}.{slower}{where} Add --out FILE to have the best written to a file."
        if run.decisions.get(id) == "kept":
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
