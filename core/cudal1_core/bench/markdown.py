"""A report as Markdown."""

from __future__ import annotations

from cudal1_core.bench.sections import Section, sections
from cudal1_core.bench.table import Report
from cudal1_core.bench.words import escape_markdown as esc


def as_markdown(report: Report) -> str:
    parts = [f"# {esc(report.title)}"]
    for section in sections(report):
        parts.append(f"## {esc(section.title)}")
        parts += [esc(sentence) for sentence in section.sentences]
        if section.rows:
            parts.append(_table(section))
    return "\n\n".join(parts) + "\n"


def _table(section: Section) -> str:
    marks = ["---:" if section.is_number(column) else "---" for column in range(len(section.head))]
    lines = [section.head, marks, *(tuple(esc(cell) for cell in row) for row in section.rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
