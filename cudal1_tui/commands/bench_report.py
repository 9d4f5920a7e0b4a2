"""`cudal1-tui bench report`: the table of results in Markdown, HTML, JSON and CSV."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cudal1_core.bench.markdown import as_markdown
from cudal1_core.bench.page import as_html
from cudal1_core.bench.results import read_results
from cudal1_core.bench.sheet import as_csv, as_json
from cudal1_core.bench.table import Report, make_report
from cudal1_core.errors import UsageError

from cudal1_tui.commands.bench_summary import print_summary

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from cudal1_core.bench.row import Row

FORMS = {".md": as_markdown, ".html": as_html, ".json": as_json, ".csv": as_csv}


def main(options: argparse.Namespace) -> int:
    rows = read_results(options.results)
    second = read_results([options.repeat]) if options.repeat else []
    report = make_report(rows, options.title or default_title(options.results[0]), second)
    if options.out is None:
        write_all(report, options.results[0])
        print_summary(rows)
        return 0
    if options.out.suffix not in FORMS:
        raise UsageError(f"--out {options.out}: reports end in {', '.join(FORMS)}")
    _write(options.out, FORMS[options.out.suffix](report))
    return 0


def default_title(results: Path) -> str:
    return f"{results.stem}: what the referee found"


def write_reports(rows: Sequence[Row], results: Path) -> None:
    write_all(make_report(rows, default_title(results)), results)


def write_all(report: Report, results: Path) -> None:
    """Every form, beside the results. Raises UsageError."""
    for suffix, form in FORMS.items():
        _write(results.with_suffix(suffix), form(report))
    names = ", ".join(FORMS)
    print(f"cudal1-tui: reports beside {results}: {names}", file=sys.stderr)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{path} cannot be written", error.strerror or str(error)) from error
