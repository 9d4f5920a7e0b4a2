"""Pages about the run as a whole, made from the view, and the log that it names."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from textual.content import Content

from cudal1_tui import words
from cudal1_tui.plain import clean, fit, one_line

if TYPE_CHECKING:
    from cudal1_tui.view import Row, View

PAGES = ("progress", "techniques", "decisions", "prompt", "answer", "output")
_AXIS = 8  # cells left of the plot: a speedup and the line
_LOG_TAIL = 32_768  # bytes of a log that are read at a time
_LONGEST = 200_000  # characters of a prompt or an answer that are shown


def page(name: str, view: View, width: int, height: int) -> Content:
    """One of PAGES, for a pane of `width` x `height` cells."""
    match name:
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


def progress(view: View, width: int, height: int) -> Content:
    """Speedup by candidate, in order of writing: marks for candidates, a line for the best so far."""
    timed = [row.speedup for row in view.rows if row.speedup is not None]
    if not timed:
        return Content.styled("Each candidate's speedup is plotted here once one has been timed.", "$muted")
    room = max(width - _AXIS, 8)
    shown = view.rows[-room:]
    step = min(max(room // len(shown), 1), 4)
    levels = min(max(height - 5, 4), 24)
    top = max(*timed, 1.0) * 1.05
    one = _level(1.0, top, levels)
    cells = [[("┄" if level == one else " ", "$muted")] * (len(shown) * step) for level in range(levels)]
    best = _best_before(view, len(view.rows) - len(shown))
    for number, row in enumerate(shown):
        if row.can_be_best and row.speedup is not None:
            best = max(best or 0.0, row.speedup)
        if best is not None:
            for column in range(number * step, (number + 1) * step):
                cells[_level(best, top, levels)][column] = ("─", "$best")
    for number, row in enumerate(shown):  # after the line, so that no mark is hidden
        if row.speedup is not None:
            cells[_level(row.speedup, top, levels)][number * step] = _mark(row, view)
    labelled = {_level(max(timed), top, levels): max(timed), one: 1.0}
    lines = []
    for level in reversed(range(levels)):
        label = words.speedup_text(labelled[level]) if level in labelled else ""
        lines.append(Content.assemble((f"{label:>{_AXIS - 2}} │", "$muted"), *cells[level]))
    failed = [("✗" if _failed(row) else "·" if row.speedup is None else " ", "$failed") for row in shown]
    lines.append(Content.assemble((" " * (_AXIS - 1) + "└", "$muted"), *_spread(failed, step)))
    lines.append(Content.styled(" " * _AXIS + _round_starts(shown, step), "$muted"))
    left_out = len(view.rows) - len(shown)
    if left_out:
        lines.append(Content.styled(f"The {left_out} candidates before these do not fit.", "$muted"))
    legend = (
        "● best  ◆ kept  ✓ accepted  ! accepted, never the best  ✗ rejected  · no speedup yet  "
        "─ best so far  ┄ as fast as the reference"
    )
    lines += [Content(""), Content.styled(legend, "$muted")]
    return Content("\n").join(lines)


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


def _level(speedup: float, top: float, levels: int) -> int:
    return min(max(int(speedup / top * levels), 0), levels - 1)


def _best_before(view: View, end: int) -> float | None:
    return max((row.speedup or 0.0 for row in view.rows[:end] if row.can_be_best), default=None)


def _mark(row: Row, view: View) -> tuple[str, str]:
    if row.decision == "kept":
        return "◆", "$primary bold"
    if row.id == view.best:
        return "●", "$best bold"
    accepted = row.verdict is not None and row.verdict.accepted
    if accepted and not row.can_be_best:
        return "!", "$warning"
    return ("✓", f"${words.speed_ink(row.speedup, row.interval)}") if accepted else ("▸", "$primary")


def _failed(row: Row) -> bool:
    return row.verdict is not None and not row.verdict.accepted


def _spread(marks: list[tuple[str, str]], step: int) -> list[tuple[str, str]]:
    return [(mark + " " * (step - 1), ink) for mark, ink in marks]


def _round_starts(rows: tuple[Row, ...], step: int) -> str:
    """`r1      r2   ` under the candidates with which the rounds begin."""
    line, last = "", 0
    for number, row in enumerate(rows):
        if row.round != last and len(line) <= number * step:
            line = line.ljust(number * step) + f"r{row.round} "
        last = row.round
    return line


def _fastest(rows: list[Row]) -> tuple[float | None, str]:
    timed = [row for row in rows if row.verdict and row.verdict.accepted and row.speedup is not None]
    best = max(timed, key=lambda row: row.speedup or 0.0, default=None)
    return (best.speedup, one_line(best.id)) if best else (None, "")
