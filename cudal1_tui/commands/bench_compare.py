"""`cudal1-tui bench compare`: results of the same suite side by side, each against the first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudal1_core.bench.compare import Comparison, TaskChange, compare
from cudal1_core.bench.figures import Outcome, figures, outcomes
from cudal1_core.bench.results import read_results
from cudal1_core.bench.table import word
from cudal1_core.bench.words import interval, percent, times
from cudal1_core.errors import UsageError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cudal1_tui.plain import one_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from cudal1_core.bench.row import Row

PIPE_WIDTH = 160  # columns where standard output is no terminal


def main(options: argparse.Namespace) -> int:
    """1 where a task of a later column is slower or no longer accepted."""
    if len(options.results) < 2:
        raise UsageError("bench compare needs two results or more", "Each is compared with the first.")
    columns = [
        (name, read_results([path])) for name, path in zip(_names(options.results), options.results, strict=True)
    ]
    first = columns[0][1]
    found = [compare(first, rows, name, options.tolerance) for name, rows in columns[1:]]
    if not any(comparison.judged for comparison in found):
        raise UsageError("The results have no judged task in common", "They are not of the same suite.")
    if options.json:
        print(json.dumps([_facts(comparison) for comparison in found], indent=1, allow_nan=False))
    else:
        _print(columns, found, every=options.all, tolerance=options.tolerance)
    return 1 if any(comparison.worse for comparison in found) else 0


def _names(paths: Sequence[Path]) -> list[str]:
    """Stems, or whole paths where those are alike."""
    stems = [path.stem for path in paths]
    return stems if len(set(stems)) == len(stems) else [str(path) for path in paths]


def _print(
    columns: Sequence[tuple[str, list[Row]]], found: Sequence[Comparison], *, every: bool, tolerance: float
) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPE_WIDTH)
    console.print(_overview(columns))
    shown = _shown(found, every=every)
    if shown:
        console.print(_tasks(columns, found, shown))
    for comparison in found:
        console.print(Text(_sentence(comparison, columns[0][0], tolerance)), soft_wrap=True)


def _overview(columns: Sequence[tuple[str, list[Row]]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("results", overflow="fold")
    table.add_column("device", overflow="fold")
    for heading in ("tasks", "accepted", "geomean", "median"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, rows in columns:
        line = figures(name, outcomes(rows))
        device = next((row.device for row in rows if row.device), "")
        cells = (str(line.tasks), f"{line.accepted} ({percent(line.success)})", times(line.geomean), times(line.median))
        table.add_row(Text(one_line(name)), Text(one_line(device)), *cells)
    return table


def _shown(found: Sequence[Comparison], *, every: bool) -> list[str]:
    """Tasks in order of the first column; only those that changed anywhere, unless all are wanted."""
    changes = [change for comparison in found for change in comparison.changes]
    return list(dict.fromkeys(change.task for change in changes if every or change.change not in ("same", "unknown")))


def _tasks(columns: Sequence[tuple[str, list[Row]]], found: Sequence[Comparison], shown: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("task", no_wrap=True)
    for name, _ in columns:
        table.add_column(Text(one_line(name)), overflow="fold")
    by_task = [{change.task: change for change in comparison.changes} for comparison in found]
    for task in shown:
        first = by_task[0][task].before if task in by_task[0] else None
        cells = [_cell(first), *(_changed(changes.get(task)) for changes in by_task)]
        table.add_row(Text(one_line(task)), *cells)
    return table


def _cell(outcome: Outcome | None) -> Text:
    if outcome is None:
        return Text("not there", style="dim")
    if outcome.speedup is None:
        return Text(word(outcome.row))
    return Text(f"{times(outcome.speedup)} {interval(outcome.row.verdict.speedup_interval)}")


def _changed(change: TaskChange | None) -> Text:
    """The change is a word, so that it can be read without colour."""
    if change is None:
        return Text("not there", style="dim")
    text = _cell(change.after)
    if change.change in ("faster", "slower", "gained", "lost"):
        style = "bold" if change.change in ("faster", "gained") else "bold red"
        text.append(f" {change.change}", style=style)
    return text


def _sentence(comparison: Comparison, first: str, tolerance: float) -> str:
    counts = {kind: len(comparison.of(kind)) for kind in ("faster", "slower", "gained", "lost")}
    told = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "nothing changed"
    ratio = ""
    if comparison.geomean is not None and comparison.median_change is not None:
        change = f"{comparison.median_change * 100:.1f} %"
        ratio = f"; speedups are {comparison.geomean:.3f} of it (geomean), {change} apart in the median"
    agree = f"{comparison.same_verdict} of {comparison.judged} verdicts agree"
    missing = len(comparison.of("unknown"))
    rest = f"; {missing} not judged in both" if missing else ""
    return one_line(f"{comparison.name} against {first}: {told} beyond {tolerance * 100:g} %; {agree}{ratio}{rest}.")


def _facts(comparison: Comparison) -> dict[str, Any]:
    return {
        "name": comparison.name,
        "judged": comparison.judged,
        "same_verdict": comparison.same_verdict,
        "geomean": comparison.geomean,
        "median_change": comparison.median_change,
        "changes": [
            {
                "task": change.task,
                "change": change.change,
                "before": _side(change.before),
                "after": _side(change.after),
                "ratio": change.ratio,
            }
            for change in comparison.changes
        ],
    }


def _side(outcome: Outcome | None) -> dict[str, Any] | None:
    if outcome is None:
        return None
    verdict = outcome.row.verdict
    return {"verdict": word(outcome.row), "speedup": outcome.speedup, "interval": verdict.speedup_interval}
