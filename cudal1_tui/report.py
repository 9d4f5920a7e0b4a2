"""A run as a report to hand on: Markdown, or one HTML file that needs nothing else. Made from the view alone."""

from __future__ import annotations

import html
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cudal1_core.versus import best_other, versus

from cudal1_tui import words
from cudal1_tui.plain import clean, one_line
from cudal1_tui.scale import scale_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cudal1_tui.view import Row, View

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 760, 260, 52, 8, 24  # of the plot, in pixels
_HEAD = ("id", "round", "state", "checks", "speedup", "interval", "time", "decision", "title")

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
:root {{ color-scheme: light dark; --blue: #0a4f9e; --orange: #8a3c00; --line: #8886; --best: #8a5a00; }}
@media (prefers-color-scheme: dark) {{ :root {{ --blue: #6cb6ff; --orange: #f2994a; --best: #ffd479; }} }}
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; width: 100%; }}
td, th {{ text-align: left; padding: .2rem .6rem; border-bottom: 1px solid var(--line); }}
td:nth-child(5), td:nth-child(6), td:nth-child(7) {{ font-variant-numeric: tabular-nums; white-space: nowrap; }}
pre {{ overflow: auto; padding: .8rem; border: 1px solid var(--line); border-radius: 4px; font-size: 13px; }}
svg {{ max-width: 100%; height: auto; font: 11px system-ui, sans-serif; fill: currentColor; }}
</style></head><body>
{body}
</body></html>
"""


def write(view: View, path: Path) -> Path:
    """Writes HTML where the name ends in .html, else Markdown. Raises OSError."""
    text = as_html(view) if path.suffix.lower() in (".html", ".htm") else as_markdown(view)
    path.write_text(text, encoding="utf-8", errors="replace")
    return path


def as_markdown(view: View) -> str:
    """Summary, candidates, evidence and code of the best, reasons of the rejected, decisions."""
    parts = [f"# {_md(_title(view))}", "\n".join(f"- {_md(fact)}" for fact in _facts(view))]
    rows = [_cells(row, view) for row in view.rows]
    table = ["| " + " | ".join(_HEAD) + " |", "|" + " --- |" * len(_HEAD)]
    parts += ["## Candidates", "\n".join(table + ["| " + " | ".join(map(_md, row)) + " |" for row in rows])]
    for row in _told(view):
        parts.append(f"## {_md(_name(row))}")
        parts.append("\n".join(f"- {_md(line)}" for line in _evidence(row)))
        parts.append(_fenced(row.source))
    if view.history:
        parts += ["## Decisions", "\n".join(f"- {_md(line)}" for line in _decisions(view))]
    parts += ["## Reference", _fenced(view.task.source if view.task else "")]
    return "\n\n".join(parts) + "\n"


def as_html(view: View) -> str:
    """The same as HTML with a plot; nothing in it is loaded from elsewhere and nothing runs."""
    esc = html.escape
    body = [f"<h1>{esc(_title(view))}</h1>", _list(_facts(view)), plot(view), "<h2>Candidates</h2>"]
    head = "".join(f"<th>{name}</th>" for name in _HEAD)
    lines = ["".join(f"<td>{esc(cell)}</td>" for cell in _cells(row, view)) for row in view.rows]
    body.append(f"<table><tr>{head}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>")
    for row in _told(view):
        body += [f"<h2>{esc(_name(row))}</h2>", _list(_evidence(row)), f"<pre>{esc(clean(row.source))}</pre>"]
    if view.history:
        body += ["<h2>Decisions</h2>", _list(_decisions(view))]
    if view.task:
        body += ["<h2>Reference</h2>", f"<pre>{esc(clean(view.task.source))}</pre>"]
    return _PAGE.format(title=esc(_title(view)), body="\n".join(body))


def plot(view: View) -> str:
    """Speedup by candidate in order of writing as SVG, on a logarithmic scale; empty without a time."""
    timed = [row for row in view.rows if row.speedup is not None]
    if not timed:
        return ""
    scale = scale_for(row.speedup or 0.0 for row in timed)
    step = (_WIDTH - _LEFT - 10) / len(view.rows)

    def across(number: float) -> float:
        return _LEFT + (number + 0.5) * step

    def up(speedup: float) -> float:
        return _TOP + (_HEIGHT - _BOTTOM - _TOP) * (1 - scale.height(speedup))

    marks = [
        f'<line x1="{_LEFT}" y1="{up(at):.1f}" x2="{_WIDTH}" y2="{up(at):.1f}" stroke="var(--line)"/>'
        f'<text x="{_LEFT - 6}" y="{up(at) + 4:.1f}" text-anchor="end">{at:.2f}x</text>'
        for at in scale.ticks()
    ]
    best, steps = 0.0, list[str]()
    for number, row in enumerate(view.rows):
        if row.can_be_best and (row.speedup or 0.0) > best:
            best = row.speedup or 0.0
        if best:
            steps.append(f"{_LEFT + number * step:.1f},{up(best):.1f} {_LEFT + (number + 1) * step:.1f},{up(best):.1f}")
    if steps:
        marks.append(f'<polyline points="{" ".join(steps)}" fill="none" stroke="var(--best)" stroke-width="2"/>')
    for number, row in enumerate(view.rows):
        x = across(number)
        if row.speedup is not None:
            ink = "var(--blue)" if row.speedup >= 1 else "var(--orange)"
            if row.interval:
                low, high = up(row.interval[0]), up(row.interval[1])
                marks.append(f'<line x1="{x:.1f}" y1="{low:.1f}" x2="{x:.1f}" y2="{high:.1f}" stroke="{ink}"/>')
            told = html.escape(f"{_name(row)}: {words.speedup_text(row.speedup)}")
            marks.append(
                f'<circle cx="{x:.1f}" cy="{up(row.speedup):.1f}" r="4" fill="{ink}"><title>{told}</title></circle>'
            )
        if len(view.rows) <= 40:
            name = html.escape(one_line(row.id)[:6])
            marks.append(f'<text x="{x:.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{name}</text>')
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="Speedup by candidate">{"".join(marks)}</svg>'


def _title(view: View) -> str:
    return f"{one_line(Path(view.reference).name)}: what was tried to make it faster"


def _facts(view: View) -> list[str]:
    best, task = view.row(view.best), view.task
    facts = [f"reference: {one_line(view.reference)}"]
    if task:
        facts.append(f"shapes: {', '.join(task.inputs)} → {', '.join(task.outputs)} on {one_line(task.device_name)}")
    facts += [f"{one_line(name)}: {words.ms_text(ms)} a call" for name, ms in view.baselines.items()]
    facts.append(
        f"policy: {one_line(view.policy)}, rounds: {view.round} of {view.rounds}, ended: {view.ending or 'no'}"
    )
    if view.started_at is not None:
        facts.append(time.strftime("started: %Y-%m-%d %H:%M:%S %z", time.localtime(view.started_at)))
    told = f"{_name(best)}, {words.speedup_text(best.speedup)} {words.interval_text(best.interval)}" if best else "none"
    if best and (other := best_other(view.baselines)) is not None:
        told += f", {words.speedup_text(versus(best.speedup, view.baselines, other))} vs {one_line(other)}"
    return [*facts, f"best: {told}"]


def _cells(row: Row, view: View) -> tuple[str, ...]:
    glyph, word = words.state_of(row, view.best)
    title = one_line(row.candidate.title) if row.candidate else ""
    decision = "" if row.decision == "none" else row.decision
    speed = (words.speedup_text(row.speedup), words.interval_text(row.interval), words.ms_text(row.candidate_ms))
    return (one_line(row.id), str(row.round), f"{glyph} {word}", words.checks_text(row), *speed, decision, title)


def _evidence(row: Row) -> list[str]:
    verdict = row.verdict
    lines = [one_line(verdict.reason)] if verdict and verdict.reason else []
    lines += [
        f"{'✓' if check.passed else '✗'} {one_line(check.name)}: {one_line(check.detail)}" for check in row.checks
    ]
    lines += [f"! {label}: {words.LABELS.get(label, '')}" for label in (verdict.labels if verdict else ())]
    return lines or ["no check was made"]


def _told(view: View) -> list[Row]:
    """The best and what a person accepted: their evidence and code stand in full."""
    return [row for row in view.rows if row.id == view.best or row.decision == "kept"]


def _decisions(view: View) -> list[str]:
    return [
        f"{time.strftime('%H:%M:%S', time.localtime(made.at))} {one_line(made.candidate)} "
        f"{'taken back' if made.decision == 'none' else made.decision} {one_line(made.path or '')}".rstrip()
        for made in view.history
    ]


def _name(row: Row) -> str:
    title = one_line(row.candidate.title) if row.candidate else ""
    return f"{one_line(row.id)} · {title}" if title else one_line(row.id)


def _list(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"


def _md(text: str) -> str:
    """One line in which no character is markup."""
    return "".join(f"\\{character}" if character in "\\`*_[]<>|#~" else character for character in one_line(text))


def _fenced(code: str) -> str:
    text = clean(code).rstrip()
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}python\n{text}\n{fence}"
