"""`cudal1-tui export`: a stored run as a report, or one of its candidates."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cudal1_core.accept import accepted_path, content, write_accepted
from cudal1_core.errors import UsageError
from cudal1_core.events import from_json
from cudal1_core.paths import home
from cudal1_core.recall import recall

from cudal1_tui import report
from cudal1_tui.state import reduce
from cudal1_tui.view import View

if TYPE_CHECKING:
    import argparse


def main(options: argparse.Namespace) -> int:
    """Exit status 0 when the report or the candidate is written. Raises UsageError."""
    events = events_file(options.run)
    if options.candidate:
        return _candidate(events, options)
    view = read_view(events)
    for out in [options.out] if options.out else [events.with_name("report.md"), events.with_name("report.html")]:
        if options.out and out.exists() and not options.overwrite:
            raise UsageError(f"--out {out} exists", "No file is replaced unasked.", "Add --overwrite to replace it.")
        try:
            print(report.write(view, out), flush=True)
        except OSError as error:
            raise UsageError(f"{out} cannot be written", str(error.strerror or error)) from error
    return 0


def _candidate(events: Path, options: argparse.Namespace) -> int:
    """To --out, else to standard output: what accepting would write, or the bare code where that cannot be."""
    recalled = recall(events)
    judged = recalled.judged.get(options.candidate)
    candidates = {one.id: one for one in (*(one.candidate for one in recalled.judged.values()), *recalled.unjudged)}
    if options.candidate not in candidates:
        known = ", ".join(candidates) or "none"
        raise UsageError(f"{options.candidate} is no candidate of this run", f"Candidates: {known}.")
    out: Path | None = options.out
    try:
        if judged is not None and judged.verdict.accepted and recalled.task is not None:
            task, target = recalled.task, out or accepted_path(recalled.task)
            if out is None:
                sys.stdout.buffer.write(content(task, judged.candidate, judged.verdict, target))
            else:
                write_accepted(task, judged.candidate, judged.verdict, path=out, overwrite=options.overwrite)
        else:
            source = candidates[options.candidate].source
            if out is None:
                sys.stdout.write(source)
            else:
                with out.open("w" if options.overwrite else "x", encoding="utf-8", errors="replace") as stream:
                    stream.write(source)
    except FileExistsError as error:
        raise UsageError(
            f"--out {out} exists", "No file is replaced unasked.", "Add --overwrite to replace it."
        ) from error
    except OSError as error:
        raise UsageError(f"{out} cannot be written", str(error.strerror or error)) from error
    if out is not None:
        print(out, flush=True)
    return 0


def events_file(run: str | None) -> Path:
    """The events of a run given as its id, its folder or the file itself; of the newest where none is given."""
    runs = home() / "runs"
    if run is None:
        found = sorted(runs.glob("*/events.jsonl"))
        if not found:
            raise UsageError(f"There is no run in {runs}", "", "Start one with `cudal1-tui MODULE.py`.")
        return found[-1]
    for path in (Path(run), Path(run) / "events.jsonl", runs / run / "events.jsonl"):
        if path.is_file():
            return path
    begun = sorted(runs.glob(f"{run}*/events.jsonl")) if run.isascii() and "/" not in run and "*" not in run else []
    if len(begun) == 1:
        return begun[0]
    raise UsageError(f"{run} is no run", f"It is neither a file of events nor a folder with one, nor an id in {runs}.")


def read_view(path: Path) -> View:
    """The view at the end of a stored run; a last line that was cut off by a crash is left out."""
    view = View()
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise UsageError(f"{path} cannot be read", str(error.strerror or error)) from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            view = reduce(view, from_json(line), 0.0)
        except (ValueError, TypeError, KeyError) as error:
            if number < len(lines):
                raise UsageError(f"{path}, line {number}: not an event", str(error)) from error
    if not view.reference:
        raise UsageError(f"{path} holds no run", "It has no run_started event.")
    return view
