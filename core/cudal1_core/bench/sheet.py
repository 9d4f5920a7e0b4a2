"""A report for other programs: CSV with a line a candidate, and JSON with every figure."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from typing import Any

from cudal1_core.bench.row import Row
from cudal1_core.bench.table import Report

COLUMNS = (
    "task", "candidate", "verdict", "category", "speedup", "low", "high", "reference_ms", "candidate_ms", "claimed",
    "win", "labels", "techniques", "device", "seconds", "reason",
)  # fmt: skip


def as_csv(report: Report) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in report.rows:
        writer.writerow(_cell(value) for value in _values(row))
    return stream.getvalue()


def as_json(report: Report) -> str:
    """Figures and rows; the rows without what the results hold anyway (checks, isolation, versions)."""
    facts: dict[str, Any] = {
        "title": report.title,
        "machine": asdict(report.machine),
        "figures": [_figures(asdict(line)) for line in report.groups],
        "baselines": [_figures(asdict(line)) for line in report.baselines],
        "wins": [asdict(line) for line in report.wins],
        "labels": [asdict(line) for line in report.labels],
        "techniques": [asdict(line) for line in report.techniques],
        "rejections": dict(report.rejections),
        "flawed": {outcome.task: list(outcome.flaws) for outcome in report.flawed},
        "agreement": asdict(report.agreement) if report.agreement else None,
        "rows": [dict(zip(COLUMNS, _values(row), strict=True)) for row in report.rows],
    }
    return json.dumps(facts, indent=1, allow_nan=False) + "\n"


def _figures(facts: dict[str, Any]) -> dict[str, Any]:
    return {**facts, "fast_p": {f"{p:g}": share for p, share in facts["fast_p"].items()}}


def _values(row: Row) -> tuple[Any, ...]:
    verdict = row.verdict
    low, high = verdict.speedup_interval or (None, None)
    return (
        row.task, row.candidate, verdict.verdict, verdict.category, verdict.speedup, low, high, verdict.reference_ms,
        verdict.candidate_ms, row.claimed.get("eager"), verdict.win, list(verdict.labels), list(row.found or row.named),
        row.device, row.seconds, row.failed or verdict.reason,
    )  # fmt: skip


def _cell(value: Any) -> str:
    """What begins like a formula is quoted, since a spreadsheet would run it."""
    if value is None:
        return ""
    if not isinstance(value, str | list):
        return str(value)
    text = " ".join((", ".join(value) if isinstance(value, list) else value).split())
    text = text.encode("utf-8", "replace").decode()
    return f"'{text}" if text[:1] in "=+-@" and text else text
