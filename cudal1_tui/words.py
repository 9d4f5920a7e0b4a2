"""The words, glyphs and numbers of the screen. A state is always a glyph and a word; colour comes third."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cudal1_core.events import MachineSampled

    from cudal1_tui.view import Row, View

DASH = "–"

LEGEND = {
    "●": "the best so far",
    "▸": "at work: writing, building, checking, timing",
    "·": "waiting for its turn, or stopped by you",
    "✓": "accepted: right on every input tried",
    "✗": "rejected, for the reason named",
    "!": "rejected for tampering, or cannot be judged",
}

STANDINGS = {  # what a file that was accepted before is worth today
    "faster": "still faster",
    "right": "still right",
    "slower": "slower",
    "wrong": "wrong",
    "unjudged": "cannot be judged",
    "gone": "reference gone",
}
LABELS = {
    "no_authored_kernel": "runs library kernels only; none of its own",
    "not_drop_in": "its weights differ in name or shape: never the best",
    "constant_output": "the reference's output does not depend on its inputs",
    "weak_task": "a wrong program could pass on this reference",
    "nondeterministic_reference": "the reference itself varies at rounding level",
    "inference_only": "gives no gradients",
    "input_domain": "right for inputs like the reference's own, wrong beyond them",
    "batch_only": "the speed comes from batching many calls; the smaller speedup counts",
    "reduced_precision": "computes in a cheaper number format, which you allowed",
    "output_reuse": "a later call changes an earlier output, which you allowed",
    "throttled": "the device slowed its clock while timing",
    "foreign_load": "other work was using the device while timing",
    "above_roofline": "quicker than memory can be moved here: look for what it leaves out",
    "fewer_operations": "quicker than the reference's operations: it found a way with fewer, or leaves some out",
    "unsettled": "two measurements, or parts of one, do not agree: no speedup is given",
    "not_isolated": "ran without the full sandbox on this machine",
}


def state_of(row: Row, best: str | None) -> tuple[str, str]:
    """Glyph and word of a row."""
    verdict = row.verdict
    if verdict is None:
        return ("·" if row.activity in ("queued", "stopped") else "▸"), str(row.activity)
    if verdict.accepted:
        return ("●" if row.id == best else "✓"), "accepted"
    word = (verdict.category or verdict.verdict).replace("_", " ")
    suspect = verdict.category == "dishonest" or verdict.verdict == "unjudgeable"
    return ("!" if suspect else "✗"), word


def ink_of(row: Row, best: str | None) -> str:
    """Name of the theme colour that goes with `state_of`."""
    glyph, _ = state_of(row, best)
    return {"●": "best", "✓": "ok", "✗": "failed", "!": "failed", "▸": "primary"}.get(glyph, "muted")


def speed_ink(speedup: float | None, interval: tuple[float, float] | None = None) -> str:
    """Blue for faster, orange for slower; plain where it may as well be the same."""
    if speedup is None:
        return "muted"
    if interval is not None and interval[0] <= 1 <= interval[1]:
        return "foreground"
    return "faster" if speedup > 1.01 else "slower" if speedup < 0.99 else "foreground"


def checks_text(row: Row) -> str:
    """Passed of all, as `7/7`."""
    if not row.checks:
        return DASH
    return f"{sum(check.passed for check in row.checks)}/{len(row.checks)}"


def speedup_text(speedup: float | None) -> str:
    return DASH if speedup is None else f"{speedup:.2f}x" if speedup >= 0.1 else f"{speedup:.2g}x"


def interval_text(interval: tuple[float, float] | None) -> str:
    """Its ends rounded outwards, so that the figure, rounded towards 1, lies within; at most 13 cells, so that a list
    never cuts a number."""
    if interval is None:
        return ""
    outwards = (math.floor(interval[0] * 100 + 1e-6) / 100, math.ceil(interval[1] * 100 - 1e-6) / 100)
    low, high = (
        f"{value:.2f}" if value < 100 else f"{value:.0f}" if value < 10_000 else f"{value:.0e}" for value in outwards
    )
    return f"[{low}{DASH}{high}]"


def ms_text(ms: float | None) -> str:
    """Three significant digits with the unit: `0.412 ms`, `87.1 ms`, `2.41 s`."""
    if ms is None:
        return DASH
    value, unit = (ms / 1000, "s") if ms >= 1000 else (ms * 1000, "µs") if ms < 0.01 else (ms, "ms")
    places = 3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{places}f} {unit}"


def machine_text(machine: MachineSampled | None) -> str:
    """`87% · 41/141 GB · 64 °C`, or `cpu 40% · 3/16 GB`; what is not known takes no room."""
    if machine is None:
        return ""
    parts = []
    if machine.use is not None:
        parts.append(f"{machine.use:.0f}%")
    if machine.used_gb is not None and machine.total_gb is not None:
        parts.append(f"{machine.used_gb:.0f}/{machine.total_gb:.0f} GB")
    if machine.celsius is not None:
        parts.append(f"{machine.celsius} °C")
    return ("" if machine.gpu else "cpu ") + " · ".join(parts) if parts else ""


def foreign_text(machine: MachineSampled | None) -> str:
    """`! 2 foreign`, kept in a line where the rest of the machine has no room: it makes times doubtful."""
    return f"! {machine.foreign} foreign" if machine is not None and machine.foreign else ""


def roofline_text(limits: dict[str, Any] | None) -> str:
    """`62% of the memory roofline`; empty where it is not known."""
    return f"{limits['share']:.0%} of the {limits['bound']} roofline" if limits else ""


def duration_text(seconds: float) -> str:
    hours, rest = divmod(int(max(seconds, 0)), 3600)
    return f"{hours:02d}:{rest // 60:02d}:{rest % 60:02d}"


def exemplar_text(candidate: str) -> str:
    """`c03`, or `c03 of an earlier run` where the archive gave it."""
    run, _, id = candidate.rpartition("/")
    return f"{id} of an earlier run" if run else id


def count_text(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def activity_text(view: View, *, paused: bool) -> tuple[str, str]:
    """Glyph and word of the run as a whole."""
    if view.ending is not None:
        return "✓" if view.ending in ("done", "budget") else "!", view.ending
    if view.started_at is None:
        return "·", "watching" if view.watch else "starting"
    return ("·", "paused") if paused else ("▸", "running")


def sparkline(values: tuple[float, ...], width: int) -> str:
    """The last `width` values as block heights between the smallest and the largest."""
    shown = values[-width:] if width > 0 else ()
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    if high - low < 1e-9:
        return "▄" * len(shown)
    return "".join("▁▂▃▄▅▆▇█"[int((value - low) / (high - low) * 7.999)] for value in shown)


def scale(interval: tuple[float, float], speedup: float, width: int) -> tuple[str, int, int]:
    """A line from 0 to past the interval, with a mark at 1x; also the columns where the interval lies.

    Returns the line and the first and last column of the interval in it.
    """
    top = max(interval[1], speedup, 1.0) * 1.15
    columns = [min(int(value / top * (width - 1)), width - 1) for value in (interval[0], speedup, interval[1])]
    line = ["─"] * width
    one = min(int(1.0 / top * (width - 1)), width - 2)
    line[one : one + 2] = "1x"
    for column in range(columns[0], columns[2] + 1):
        line[column] = "━"
    line[columns[1]] = "●"
    return "".join(line), columns[0], columns[2]
