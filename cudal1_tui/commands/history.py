"""`cudal1-tui history`: what was done before."""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from cudal1_core.archive import Archive, unusable
from cudal1_core.errors import UsageError
from cudal1_core.history import PastCandidate, PastRun, candidates_of, one_run, page_of_runs
from cudal1_core.paths import archive_path, home
from cudal1_core.restoring import bring_in
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cudal1_tui.plain import one_line
from cudal1_tui.words import DASH, count_text, speedup_text

if TYPE_CHECKING:
    import argparse

PIPE_WIDTH = 120  # columns where standard output is no terminal


def main(options: argparse.Namespace) -> int:
    """Exit status 0. Raises UsageError, ArchiveError."""
    path = archive_path()
    if not path.exists():
        raise UsageError(f"There is no archive in {home()}", "", "Start a run with `cudal1-tui MODULE.py`.")
    archive = Archive.for_reading(path)
    try:
        bring_in(archive, home() / "runs")
        return _one(archive, options) if options.run else _list(archive, options)
    except sqlite3.Error as error:
        raise unusable(path, error) from error
    finally:
        archive.close()


def _list(archive: Archive, options: argparse.Namespace) -> int:
    reference = str(options.reference.resolve()) if options.reference else None
    runs = page_of_runs(archive, reference=reference, limit=options.limit)
    if options.json:
        print(json.dumps({"runs": [asdict(run) for run in runs]}))
        return 0
    table = _table(("run", "reference", "policy", "ended"), ("written", "accepted", "best", "speedup"), ("decisions",))
    for run in runs:
        decided = ", ".join(f"{one.candidate} {one.decision}" for one in run.decisions)
        best = run.best or DASH
        table.add_row(
            run.id, Text(one_line(Path(run.reference).name)), run.policy, run.reason or "no", count_text(run.written),
            count_text(run.accepted), best, speedup_text(run.best_speedup), Text(one_line(decided)),
        )  # fmt: skip
    console = _console()
    console.print(table if runs else Text("No run is in the archive."))
    if len(runs) == options.limit:
        console.print(Text(f"Older runs: --limit {options.limit * 5}. One run: cudal1-tui history RUN."))
    return 0


def _one(archive: Archive, options: argparse.Namespace) -> int:
    run = one_run(archive, options.run)
    if run is None:
        raise UsageError(f"{options.run} is no run", "", "`cudal1-tui history` lists them.")
    candidates = candidates_of(archive, run.id)
    if options.json:
        print(json.dumps({"run": asdict(run), "candidates": [asdict(one) for one in candidates]}))
        return 0
    console = _console()
    for line in _facts(run):
        console.print(Text(line), soft_wrap=True)
    table = _table(("candidate", "verdict"), ("speedup", "round"), ("decision", "title"))
    decided = {one.candidate: one for one in run.decisions}
    for one in candidates:
        decision = decided.get(one.id)
        what = (
            " ".join(part for part in (decision.decision, Path(decision.path or "").name) if part) if decision else ""
        )
        table.add_row(
            one.id,
            _word(one),
            speedup_text(one.speedup),
            str(one.round),
            Text(one_line(what)),
            Text(one_line(one.title)),
        )
    console.print(table)
    return 0


def _facts(run: PastRun) -> list[str]:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started))
    ended = run.reason or "no: it goes on, or was killed"
    return [
        f"{run.id}: {one_line(run.reference)} ({run.model or DASH}) on {one_line(run.device)}",
        f"started {when}, policy {run.policy}, ended: {ended}",
        f"go on: cudal1-tui resume {run.id}    report: cudal1-tui export {run.id}",
    ]


def _word(one: PastCandidate) -> str:
    if one.verdict is None:
        return "not judged"
    if one.verdict == "accepted":
        return "accepted" if one.drop_in else "accepted, not drop-in"
    return (one.category or one.verdict).replace("_", " ")


def _table(left: tuple[str, ...], right: tuple[str, ...], last: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in left:
        table.add_column(heading, overflow="fold")
    for heading in right:
        table.add_column(heading, no_wrap=True, justify="right")
    for heading in last:
        table.add_column(heading, overflow="fold")
    return table


def _console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPE_WIDTH)
