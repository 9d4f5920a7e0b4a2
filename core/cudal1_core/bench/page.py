"""A report as one HTML file that needs nothing else: plots inline, nothing loaded, nothing that runs."""

from __future__ import annotations

from cudal1_core.bench import svg
from cudal1_core.bench.sections import Section, sections
from cudal1_core.bench.table import Report
from cudal1_core.bench.words import escape_html as esc

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
:root {{ color-scheme: light dark; --fast: #0a4f9e; --slow: #b4560a; --line: #8886; }}
@media (prefers-color-scheme: dark) {{ :root {{ --fast: #6cb6ff; --slow: #f2994a; }} }}
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 66rem; margin: 2rem auto; padding: 0 1rem; }}
div.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; }}
td, th {{ text-align: left; vertical-align: top; padding: .15rem .6rem; border-bottom: 1px solid var(--line); }}
.n {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
svg {{ max-width: 100%; height: auto; font: 11px system-ui, sans-serif; fill: currentColor; }}
</style></head><body>
{body}
</body></html>
"""

_PLOTS = (
    ("Distribution of speedups", svg.distribution),
    ("Speedup by task", svg.by_task),
    ("Claimed against measured", svg.claimed),
)


def as_html(report: Report) -> str:
    body = [f"<h1>{esc(report.title)}</h1>"]
    for number, section in enumerate(sections(report)):
        body.append(_section(section))
        if number == 1:  # behind the first table
            body += [f"<h2>{title}</h2>{plot}" for title, draw in _PLOTS if (plot := draw(report))]
    return _PAGE.format(title=esc(report.title), body="\n".join(body))


def _section(section: Section) -> str:
    parts = [f"<h2>{esc(section.title)}</h2>", *(f"<p>{esc(sentence)}</p>" for sentence in section.sentences)]
    if section.rows:
        lines = [_row(section, row, "td") for row in section.rows]
        parts.append(f'<div class="wide"><table>{_row(section, section.head, "th")}{"".join(lines)}</table></div>')
    return "\n".join(parts)


def _row(section: Section, cells: tuple[str, ...], tag: str) -> str:
    marks = [' class="n"' if section.is_number(column) else "" for column in range(len(cells))]
    return "<tr>" + "".join(f"<{tag}{mark}>{esc(c)}</{tag}>" for mark, c in zip(marks, cells, strict=True)) + "</tr>"
