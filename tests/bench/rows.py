"""Rows as a bench writes them, with the few facts that a test is about."""

from __future__ import annotations

from typing import Any

from cudal1_core.bench.row import Row
from cudal1_core.verdict import Verdict


def accepted(
    task: str,
    speedup: float,
    interval: tuple[float, float] | None = None,
    *,
    labels: tuple[str, ...] = (),
    win: str = "kernel",
    baselines: dict[str, float] | None = None,
    **facts: Any,
) -> Row:
    """Its candidate takes 1 ms."""
    verdict = Verdict(
        "accepted",
        speedup=speedup,
        speedup_interval=interval or (speedup * 0.99, speedup * 1.01),
        reference_ms=speedup,
        candidate_ms=1.0,
        win=win,
        baselines={"eager": speedup} if baselines is None else baselines,
        labels=labels,
        device={"device": "cuda:0", "name": "NVIDIA H200"},
        versions={"torch": "2.13.0", "cuda": "13.0", "python": "3.11.7"},
    )
    return row(task, verdict, **facts)


def rejected(task: str, category: str, reason: str = "it is so", **facts: Any) -> Row:
    return row(task, Verdict("rejected", category, reason), **facts)


def row(task: str, verdict: Verdict, **facts: Any) -> Row:
    level = int(task[1]) if task[:1] == "L" and task[1:2].isdigit() else None
    known = {"candidate": "release", "level": level, "key": f"{task} {facts.get('candidate', '')}"}
    return Row(task=task, verdict=verdict, **{**known, **facts})
