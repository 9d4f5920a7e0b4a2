"""Plots as inline SVG. Speedups are on log scales, so that 2x and 0.5x are equally far from 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cudal1_core.bench.table import Report
from cudal1_core.bench.words import escape_html as esc
from cudal1_core.bench.words import times

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 760, 300, 56, 34, 12  # pixels
BINS_A_DOUBLING = 4
_MARKS = (0.01, 0.1, 0.25, 0.5, 1, 2, 4, 10, 100, 1000)


def distribution(report: Report) -> str:
    """How many sound tasks have which speedup."""
    speeds = [outcome.speedup for outcome in report.outcomes if outcome.speedup and not outcome.flaws]
    if not speeds:
        return ""
    bins: dict[int, int] = {}
    for speed in speeds:
        place = math.floor(math.log2(speed) * BINS_A_DOUBLING + 1e-9)
        bins[place] = bins.get(place, 0) + 1
    first, last, most = min(bins), max(bins), max(bins.values())
    across = _Axis(2 ** (first / BINS_A_DOUBLING), 2 ** ((last + 1) / BINS_A_DOUBLING), LEFT, WIDTH - 10)
    floor = HEIGHT - BOTTOM
    parts = [_line(LEFT, floor, WIDTH - 10, floor)]
    for place, count in sorted(bins.items()):
        low, high = 2 ** (place / BINS_A_DOUBLING), 2 ** ((place + 1) / BINS_A_DOUBLING)
        x, end = across.at(low), across.at(high)
        tall = (floor - TOP) * count / most
        ink = "var(--fast)" if place >= 0 else "var(--slow)"
        parts.append(
            f'<rect x="{x + 0.5:.1f}" y="{floor - tall:.1f}" width="{max(end - x - 1, 1):.1f}" height="{tall:.1f}" '
            f'fill="{ink}"><title>{count} between {times(low)} and {times(high)}</title></rect>'
        )
    parts += [_across(across, mark) for mark in across.marks()]
    parts.append(_text(LEFT - 6, TOP + 8, f"{most} tasks", "end"))
    return _svg("Distribution of speedups", parts)


def by_task(report: Report) -> str:
    """Every accepted task, slowest first, with its interval."""
    timed = sorted((o for o in report.outcomes if o.speedup), key=lambda o: o.speedup or 0.0)
    if not timed:
        return ""
    edges = [edge for o in timed for edge in (o.row.verdict.speedup_interval or ()) if edge > 0]
    speeds = [o.speedup or 1.0 for o in timed]
    up = _Axis(min(*speeds, *edges, 1.0), max(*speeds, *edges, 1.0), HEIGHT - BOTTOM, TOP)
    step = (WIDTH - LEFT - 10) / len(timed)
    parts = [_up(up, mark) for mark in up.marks()]
    for number, outcome in enumerate(timed):
        x, speed = LEFT + (number + 0.5) * step, outcome.speedup or 1.0
        ink = "var(--line)" if outcome.flaws else "var(--fast)" if speed >= 1 else "var(--slow)"
        found = outcome.row.verdict.speedup_interval
        if found and found[0] > 0:
            parts.append(_line(x, up.at(found[0]), x, up.at(found[1]), ink))
        parts.append(_dot(x, up.at(speed), ink, f"{outcome.task}: {times(speed)}"))
        if len(timed) <= 20:
            parts.append(_text(x, HEIGHT - BOTTOM + 16, outcome.task[:9], "middle"))
    if len(timed) > 20:
        parts.append(_text(WIDTH - 10, HEIGHT - BOTTOM + 16, "tasks, slowest first; flawed ones are grey", "end"))
    return _svg("Speedup by task with intervals, slowest first", parts)


def claimed(report: Report) -> str:
    """Claimed across, measured up; on the line they agree. Rejected claims lie on the bottom edge."""
    points = [(claim, o.speedup or 1.0, o.task) for o, claim in report.claims if claim > 0]
    lost = [(row.claimed["eager"], row.task) for row in report.rejected if row.claimed.get("eager", 0) > 0]
    if not points:
        return ""
    every = [value for claim, speed, _ in points for value in (claim, speed)] + [claim for claim, _ in lost] + [1.0]
    across = _Axis(min(every), max(every), LEFT, WIDTH - 10)
    up = _Axis(min(every), max(every), HEIGHT - BOTTOM - 10, TOP)
    parts = [_up(up, mark) for mark in up.marks()] + [_across(across, mark) for mark in across.marks()]
    parts.append(_line(across.at(min(every)), up.at(min(every)), across.at(max(every)), up.at(max(every))))
    for claim, task in lost:
        told = f"{task}: claimed {times(claim)}, rejected"
        parts.append(_dot(across.at(claim), HEIGHT - BOTTOM - 3, "var(--slow)", told, size=2))
    for claim, speed, task in points:
        ink = "var(--fast)" if speed >= 1 else "var(--slow)"
        parts.append(
            _dot(across.at(claim), up.at(speed), ink, f"{task}: claimed {times(claim)}, measured {times(speed)}")
        )
    parts.append(_text(WIDTH - 10, HEIGHT - BOTTOM + 30, "claimed; rejected candidates lie on the axis", "end"))
    parts.append(_text(LEFT + 4, TOP + 8, "measured", "start"))
    return _svg("Claimed (across) against measured (up); rejected at the bottom", parts)


class _Axis:
    """A log scale between two values, in pixels."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self._low, self._high = math.log(low) - 0.05, math.log(high) + 0.05
        self._start, self._end = start, end

    def at(self, value: float) -> float:
        share = (math.log(value) - self._low) / (self._high - self._low)
        return self._start + (self._end - self._start) * share

    def marks(self) -> list[float]:
        return [mark for mark in _MARKS if self._low <= math.log(mark) <= self._high]


def _svg(label: str, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{esc(label)}">{"".join(parts)}</svg>'


def _line(x1: float, y1: float, x2: float, y2: float, ink: str = "var(--line)") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{ink}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{esc(text)}</text>'


def _dot(x: float, y: float, ink: str, told: str, size: int = 3) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{ink}"><title>{esc(told)}</title></circle>'


def _up(axis: _Axis, mark: float) -> str:
    y = axis.at(mark)
    return _line(LEFT, y, WIDTH - 10, y) + _text(LEFT - 6, y + 4, f"{mark:g}x", "end")


def _across(axis: _Axis, mark: float) -> str:
    x = axis.at(mark)
    return _line(x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 4) + _text(x, HEIGHT - BOTTOM + 16, f"{mark:g}x", "middle")
