"""The table of a bench at a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudal1_core.bench.figures import Figures, groups, outcomes, rejections
from cudal1_core.bench.words import percent, times
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cudal1_core.bench.row import Row

PIPE_WIDTH = 120  # columns where standard output is no terminal
QUARTILES_WIDTH = 96  # columns below which they are left to the reports, so that no number is cut


def print_summary(rows: Sequence[Row]) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPE_WIDTH)
    found = outcomes(rows)
    console.print(_table(groups(found), quartiles=console.width >= QUARTILES_WIDTH))
    told = ", ".join(f"{category.replace('_', ' ')} {count}" for category, count in rejections(found))
    if told:
        console.print(Text(f"rejected: {told}"), soft_wrap=True)
    if unjudged := [outcome for outcome in found if outcome.unjudged]:
        names = ", ".join(outcome.task for outcome in unjudged[:8])
        more = f" and {len(unjudged) - 8} more" if len(unjudged) > 8 else ""
        console.print(Text(f"not judged (in no figure): {names}{more}"), soft_wrap=True)


def _table(lines: Sequence[Figures], *, quartiles: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", no_wrap=True)
    middle = ("p75", "median", "p25") if quartiles else ("median",)
    for heading in ("tasks", "accepted", ">1.01x", "mean", "geomean", "max", *middle):
        table.add_column(heading, no_wrap=True, justify="right")
    for line in lines:
        rest = (line.p75, line.median, line.p25) if quartiles else (line.median,)
        speeds = (line.mean, line.geomean, line.maximum, *rest)
        counts = (str(line.tasks), f"{line.accepted} ({percent(line.success)})", str(line.faster))
        table.add_row(line.name, *counts, *(times(value) for value in speeds))
    return table
