"""Pages about the run as a whole, made from the view, and the log that it names."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from textual.content import Content

from cudal1_tui import words
from cudal1_tui.plain import clean, fit, one_line
from cudal1_tui.plot import plot
from cudal1_tui.widgets.evidence import correctness, speed

if TYPE_CHECKING:
    from cudal1_tui.view import Row, View

_SCALE = 60  # cells of a scale and a row of blocks
_LOG_TAIL = 32_768  # bytes of a log that are read at a time
_LONGEST = 200_000  # characters of a prompt or an answer that are shown
_HARD = "\u00a0"  # a space at which no line ends
_MARKS = (
    "● best", "◆ kept", "✓ accepted", "! accepted, never the best", "▸ being timed", "✗ rejected", "· no speedup yet",
    "┊ interval", "─ best so far", "┄ as fast as the reference",
)  # fmt: skip


def page(name: str, view: View, width: int, height: int) -> Content:
    """One of PAGES, for a pane of `width` x `height` cells."""
    match name:
        case "evidence":
            return evidence(view, width)
        case "progress":
            return progress(view, width, height)
        case "techniques":
            return techniques(view, width)
        case "decisions":
            return decisions(view)
        case "prompt":
            return prompt(view)
        case "output":
            return output(view)
        case _:
            return answer(view.current)


def evidence(view: View, width: int) -> Content:
    """Everything that a verdict rests on: checks, timing, and where and how it was judged."""
    row = view.current
    heading = "$foreground bold"
    parts = [correctness(row, view, width), Content(""), Content.styled("speed", heading)]
    parts.append(speed(row, view, min(width, _SCALE)))
    verdict = row.verdict if row else None
    if row is None or verdict is None:
        return Content("\n").join(parts)
    facts = {
        "device": str(verdict.device.get("name", "")),
        "flags": ", ".join(f"{name} {value}" for name, value in dict(verdict.device.get("flags", {})).items()),
        "sandbox": ", ".join(verdict.isolation),
        "versions": ", ".join(f"{name} {version}" for name, version in verdict.versions.items()),
        "seed": verdict.seed,
    }
    if view.folder:
        source = Path(view.folder) / f"{row.id}.py"
        facts["again"] = f"cudal1-tui verify {shlex.quote(view.reference)} {shlex.quote(str(source))}"
    parts += [Content(""), Content.styled("how it was judged", heading)]
    for name, told in facts.items():
        if told:
            parts.append(Content.assemble((f"{name:<10}", "$muted"), one_line(told)))
    return Content("\n").join(parts)


def progress(view: View, width: int, height: int) -> Content:
    """The plot of every candidate's speedup, what its marks mean, and what each round brought."""
    rounds = _rounds(view)
    whole = "  ".join(mark.replace(" ", _HARD) for mark in _MARKS)  # a mark stays with its words
    legend = fill(whole, width).replace(_HARD, " ").splitlines()
    below = [Content.styled(line, "$muted") for line in ["", *legend, ""]] + rounds
    return Content("\n").join([*plot(view, width, max(height - len(below), 8)), *below])


def techniques(view: View, width: int) -> Content:
    """Each technique with how often it was tried and accepted, and its best speedup."""
    tried: dict[str, list[Row]] = {}
    for row in view.rows:
        for name in row.candidate.techniques if row.candidate else ():
            tried.setdefault(one_line(name), []).append(row)
    if not tried:
        return Content.styled("No candidate has named a technique yet.", "$muted")
    name_width = min(max(len(name) for name in tried) + 2, max(width - 36, 12))
    head = f"{'technique':<{name_width}}{'tried':>6}{'accepted':>10}{'best':>9}  candidate"
    lines = [Content.styled(head, "$muted")]
    for name, rows in sorted(tried.items(), key=lambda item: -(_fastest(item[1])[0] or 0.0)):
        speedup, candidate = _fastest(rows)
        accepted = sum(row.verdict is not None and row.verdict.accepted for row in rows)
        lines.append(
            Content.assemble(
                fit(name, name_width),
                f"{len(rows):>6}{accepted:>10}",
                (f"{words.speedup_text(speedup):>9}", f"${words.speed_ink(speedup)}"),
                (f"  {candidate}", "$muted"),
            )
        )
    note = "A candidate that combines techniques counts for each; best is of accepted ones."
    return Content("\n").join([*lines, Content(""), Content.styled(note, "$muted")])


def decisions(view: View) -> Content:
    """What the person decided, newest first."""
    if not view.history:
        return Content.styled("Nothing decided yet. a accepts, x rejects, f feeds the selected candidate.", "$muted")
    lines = []
    for made in reversed(view.history):
        row = view.row(made.candidate)
        clock = time.strftime("%H:%M:%S", time.localtime(made.at))
        word = "taken back" if made.decision == "none" else made.decision
        speed = words.speedup_text(row.speedup if row else None)
        file = one_line(Path(made.path).name) if made.path else ""
        lines.append(
            Content.assemble(
                (f"{clock}  ", "$muted"), f"{fit(one_line(made.candidate), 6)}", (f"{word:<12}", "$primary"),
                f"{speed:>8}", (f"  {file}", "$muted"),
            )
        )  # fmt: skip
    return Content("\n").join(lines)


def prompt(view: View) -> Content:
    """What the policy was asked in the round of the selected candidate, with the exemplars it was shown."""
    row = view.current
    wanted = row.round if row is not None else view.round
    asked = next((prompt for prompt in reversed(view.prompts) if prompt.round == wanted), None)
    if asked is None:
        return Content.styled("The prompt of a round is shown here once the round has begun.", "$muted")
    lines = [Content.styled(f"round {asked.round}", "$foreground bold")]
    for id in asked.exemplars:
        shown = view.row(id)
        name = one_line(words.exemplar_text(id))
        speed = words.speedup_text(shown.speedup) if shown else ""
        lines.append(Content.assemble(("exemplar ", "$muted"), name, (f"  {speed}", "$faster")))
    if not asked.exemplars:
        lines.append(Content.styled("no exemplars", "$muted"))
    body = clean(asked.text)[:_LONGEST].strip() or "This policy was given no text."
    return Content("\n").join([*lines, Content(""), Content(body)])


def answer(row: Row | None) -> Content:
    """The policy's whole answer: its analysis and design before the code."""
    text = clean(row.text)[:_LONGEST].strip() if row else ""
    return Content(text) if text else Content.styled("The policy's whole answer is shown here.", "$muted")


def output(view: View) -> Content:
    """The end of what the selected candidate's build and run printed."""
    row = view.current
    empty = Content.styled("What building and running the candidate prints is shown here.", "$muted")
    if row is None or not view.folder or Path(row.id).name != row.id:
        return empty
    try:
        with (Path(view.folder) / "logs" / f"{row.id}.log").open("rb") as log:
            size = log.seek(0, 2)
            log.seek(max(size - _LOG_TAIL, 0))
            text = clean(log.read().decode("utf-8", "replace")).strip()
    except OSError:
        return empty
    if not text:
        return Content.styled(f"{one_line(row.id)} printed nothing.", "$muted")
    cut = [Content.styled(f"The first {size - _LOG_TAIL:,} bytes are left out.", "$muted")] if size > _LOG_TAIL else []
    return Content("\n").join([*cut, Content(text)])


def _rounds(view: View) -> list[Content]:
    """A line a round: how many were written and accepted, its fastest, and the best of the run until then."""
    lines = [Content.styled(f"{'round':<7}{'written':>8}{'accepted':>10}  {'its fastest':<16}best so far", "$muted")]
    best: Row | None = None
    for number in sorted({row.round for row in view.rows}):
        rows = [row for row in view.rows if row.round == number]
        fit_for_best = [row for row in rows if row.can_be_best]
        fastest = max(fit_for_best, key=lambda row: row.speedup or 0.0, default=None)
        if fastest is not None and (best is None or (fastest.speedup or 0.0) > (best.speedup or 0.0)):
            best = fastest
        accepted = sum(row.verdict is not None and row.verdict.accepted for row in rows)
        lines.append(
            Content.assemble(
                (f"{number:<7}", "$foreground bold"), f"{len(rows):>8}{accepted:>10}  ",
                (f"{_named_speed(fastest):<16}", "$foreground"), (_named_speed(best), "$best"),
            )
        )  # fmt: skip
    return lines


def _named_speed(row: Row | None) -> str:
    return f"{one_line(row.id)} {words.speedup_text(row.speedup)}" if row else words.DASH


def _fastest(rows: list[Row]) -> tuple[float | None, str]:
    timed = [row for row in rows if row.verdict and row.verdict.accepted and row.speedup is not None]
    best = max(timed, key=lambda row: row.speedup or 0.0, default=None)
    return (best.speedup, one_line(best.id)) if best else (None, "")
