"""Why a candidate counts as right, and how its speedup was measured."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from cudal1_core.versus import EAGER, best_other, versus
from textual.content import Content

from cudal1_tui import advice_text, words
from cudal1_tui.plain import clean, one_line

if TYPE_CHECKING:
    from cudal1_tui.view import Row, View

_BESIDE = 12  # cells of a detail that fit beside the name of its check
_REASON = 4000  # characters of a reason that are shown; logs hold the rest


def correctness(row: Row | None, view: View, width: int) -> Content:
    """Verdict, reason, then each check as it came in."""
    if row is None:
        return Content.styled("Checks appear here as they are made.", "$muted")
    lines = [_headline(row, view.best)]
    verdict = row.verdict
    if verdict is not None and verdict.reason:
        lines.append(Content(clean(verdict.reason)[:_REASON].strip()))
    checks = row.checks if verdict is None else sorted(row.checks, key=lambda check: check.passed)
    for check in checks:  # what failed comes first once all is known
        glyph, ink = ("✓", "$ok") if check.passed else ("✗", "$failed")
        name = f"{glyph} {one_line(check.name).replace('_', ' ')}  "
        beside = width - len(name) >= _BESIDE  # else the detail begins on a line of its own
        indent = " " * len(name) if beside else "  "
        detail = fill(one_line(check.detail)[:_REASON], width, initial_indent=indent, subsequent_indent="  ")
        lines.append(Content.assemble((name, ink), (detail[len(name) :] if beside else f"\n{detail}", "$muted")))
    for label in verdict.labels if verdict else ():
        meaning = words.LABELS.get(label, "")
        lines.append(Content.assemble((f"! {one_line(label)}", "$warning"), (f"  {meaning}", "$muted")))
    lines += advice(row)
    if not row.checks and verdict is None:
        lines.append(Content.styled("No check yet.", "$muted"))
    if row.candidate and row.candidate.exemplars:
        names = ", ".join(one_line(words.exemplar_text(id)) for id in row.candidate.exemplars)
        lines.append(Content.styled(f"written after seeing {names}", "$muted"))
    return Content("\n").join(lines)


def advice(row: Row) -> list[Content]:
    """What looks like a cheat, and what is like a known one; it decides nothing, and says so."""
    told = advice_text.suspicions(row.advice) if row.advice is not None else []
    if not told:
        return []
    heading = Content.assemble(("? advice", "$warning"), ("  which decides nothing", "$muted"))
    return [heading, *(Content.styled(f"  {text}", "$muted") for text in told)]


def speed(row: Row | None, view: View, width: int) -> Content:
    """The speedup on a scale with its interval, both sides' times, the blocks, and the other baselines."""
    if row is None or row.speedup is None:
        return Content.styled(_no_speed(row), "$muted")
    ink = f"${words.speed_ink(row.speedup, row.interval)}"
    lines = [
        Content.assemble(
            (words.speedup_text(row.speedup), f"{ink} bold"),
            (f"  {words.interval_text(row.interval)}", ""),
            ("  vs eager", "$muted"),
        )
    ]
    if row.interval is not None and width >= 20:
        line, first, last = words.scale(row.interval, row.speedup, width)
        lines.append(
            Content.assemble((line[:first], "$muted"), (line[first : last + 1], ink), (line[last + 1 :], "$muted"))
        )
    for side, ms in (("reference", row.reference_ms), ("candidate", row.candidate_ms)):
        lines.append(Content.assemble((f"{side}  ", "$muted"), words.ms_text(ms)))
    if row.ratios:
        lines.append(
            Content.assemble(
                (words.sparkline(row.ratios, max(width - 14, 8)), ink), (f"  {row.blocks} blocks", "$muted")
            )
        )
    timed = _timed(row, view)
    lines += [_baseline(name, timed, row.speedup) for name in timed if name != EAGER]
    verdict = row.verdict
    if verdict is not None and verdict.roofline:
        lines.append(Content.styled(words.roofline_text(verdict.roofline), "$muted"))
    if row.mhz is not None:
        before, after = row.mhz
        lines.append(Content.styled(f"clock {before} MHz" + (f" → {after} MHz" if after != before else ""), "$muted"))
    if verdict is not None and verdict.win:
        win = one_line(verdict.win).replace("_", " ")
        lines.append(Content.assemble(("ran as ", "$muted"), win, (" (its own claim)", "$muted")))
    if row.path:
        lines.append(Content.assemble(("written to ", "$muted"), (one_line(Path(row.path).name), "$primary")))
    return Content("\n").join(lines)


def summary(row: Row | None, view: View) -> Content:
    """Both panes in one line, for small terminals; what does not fit is cut at its end."""
    if row is None:
        return Content("")
    glyph, word = words.state_of(row, view.best)
    if not row.checks and row.verdict is None:
        return Content.assemble((f" {glyph} {word}", f"${words.ink_of(row, view.best)}"), ("  no check yet", "$muted"))
    parts: list[tuple[str, str]] = [(f" {words.checks_text(row)} checks", "$foreground")]
    reason = row.verdict.reason if row.verdict else None
    if row.speedup is not None:
        ink = f"${words.speed_ink(row.speedup, row.interval)}"
        parts += [("  ", ""), (words.speedup_text(row.speedup), f"{ink} bold")]
        parts += [(f" {words.interval_text(row.interval)}", "")]
    elif reason:
        parts += [(f"  {word}: ", "$failed"), (one_line(reason), "$muted")]
    if row.verdict and row.verdict.labels:
        parts.append((f"  ! {', '.join(map(one_line, row.verdict.labels))}", "$warning"))
    if row.speedup is not None:
        parts += _best_other(row, view)
        parts += [(f"  {words.ms_text(row.reference_ms)} → {words.ms_text(row.candidate_ms)}", "$muted")]
    return Content.assemble(*parts)


def _headline(row: Row, best: str | None) -> Content:
    glyph, word = words.state_of(row, best)
    parts: list[tuple[str, str]] = [(f"{glyph} {word}", f"${words.ink_of(row, best)} bold")]
    if row.decision != "none":
        parts.append((f", {row.decision}", "$primary"))
    if row.seconds is not None:
        parts.append((f"  judged in {row.seconds:.1f} s", "$muted"))
    return Content.assemble(*parts)


def _no_speed(row: Row | None) -> str:
    if row is None:
        return "Timing appears here block by block."
    if row.verdict is not None:
        return "Not timed: only a candidate that is right is timed."
    return "Not timed yet."


def _timed(row: Row, view: View) -> dict[str, float]:
    return {**view.baselines, **(row.verdict.baselines if row.verdict else {})}


def _best_other(row: Row, view: View) -> list[tuple[str, str]]:
    """The speedup against the fastest baseline but eager, for one line."""
    timed = _timed(row, view)
    name = best_other(timed)
    if name is None or (against := versus(row.speedup, timed, name)) is None:
        return []
    return [(f"  {words.speedup_text(against)}", f"${words.speed_ink(against)}"), (f" vs {one_line(name)}", "$muted")]


def _baseline(name: str, timed: dict[str, float], speedup: float | None) -> Content:
    against = versus(speedup, timed, name)
    ink = f"${words.speed_ink(against)}"
    return Content.assemble(
        (f"vs {one_line(name)} ", "$muted"),
        (words.speedup_text(against), ink),
        (f"  {words.ms_text(timed[name])}", "$muted"),
    )
