"""A candidate's answer: analysis, design and code, the three sections every policy writes."""

from __future__ import annotations

from collections.abc import Sequence

from cudal1_core.playbook.technique import Finding


def answer(findings: Sequence[Finding], source: str) -> str:
    analysis = "\n\n".join(f.analysis for f in findings)
    design = "\n".join(f"{n}. {f.design}" for n, f in enumerate(findings, 1))
    design = findings[0].design if len(findings) == 1 else design
    return (
        f"## Performance Analysis\n\n{analysis}\n\n"
        f"## Algorithm Design\n\n{design}\n\n"
        f"## Code Implementation\n\n```python\n{source.rstrip()}\n```\n"
    )
