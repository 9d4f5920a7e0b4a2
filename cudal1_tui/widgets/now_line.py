"""The second line: what is being done, what comes next, and what waits for the person's decision."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from textual.content import Content

from cudal1_tui import words
from cudal1_tui.plain import fit, one_line
from cudal1_tui.widgets.line import Line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cudal1_tui.view import Row, View

_GAP = 3  # cells between what runs and what waits
_SLOW_S = 3.0  # from then on a stage tells how long it has taken


class NowLine(Line):
    """One row, drawn from the view."""

    def show(self, view: View, *, paused: bool, wall: float, keys: Mapping[str, str]) -> None:
        """`wall` is seconds since the epoch; `keys` are the names of keys by the id of their action."""
        self.put(now(view, paused=paused, wall=wall, keys=keys, width=self.size.width or 80))


def now(view: View, *, paused: bool, wall: float, keys: Mapping[str, str], width: int) -> Content:
    """The line as content of at most `width` cells; what comes next gives way first, then what is done."""
    asked = decision(view, keys)
    doing, after = work(view, paused=paused, wall=wall, keys=keys), following(view, keys)
    room = width - 2 - (asked.cell_length + _GAP if asked else 0)
    for parts in ((doing, *after), (doing, *after[:1]), (doing,)):
        left = " · ".join(parts)
        if len(left) <= room:
            break
    left = fit(left, room)
    told, _, rest = left.partition(" · ")
    line = Content.assemble(" ", (told, "$foreground"), (f" · {rest}" if rest else "", "$muted"))
    return Content.assemble(line, " " * _GAP, asked, " ") if asked else line


def work(view: View, *, paused: bool, wall: float, keys: Mapping[str, str]) -> str:
    """What is being done, or why nothing is."""
    if view.ending is not None:
        return f"the policy is {one_line(view.loading)}" if view.loading else _ended(view)
    if view.started_at is None and view.watch is not None:
        return "waiting for a reference to be saved"
    if view.started_at is None or view.task is None:
        return "reading the reference, and timing it" + (
            f"; the policy is {one_line(view.loading)}" if view.loading else ""
        )
    unjudged = view.rows.unjudged
    busy = [row for row in unjudged if row.activity not in ("queued", "writing", "stopped")]
    doing = [_stage(row, wall) for row in busy]
    if writing := [one_line(row.id) for row in unjudged if row.activity == "writing"]:
        doing.append(f"writing {writing[0]}" + (f" and {len(writing) - 1} more" if len(writing) > 1 else ""))
    if paused:
        last = f" once {one_line(busy[0].id)} is judged" if busy else ""
        return f"pauses{last}" if busy else f"paused; {keys.get('pause', '')} goes on"
    if view.loading:
        doing.append(f"the policy is {one_line(view.loading)}")
    return ", ".join(doing) or "waiting for the policy to write"


def following(view: View, keys: Mapping[str, str]) -> list[str]:
    """What comes after that, nearest first."""
    if view.started_at is None and view.watch is not None:
        return []
    if view.ending is not None:
        more = f"{keys.get('more', '')} one more round"
        return [more] if view.ending in ("done", "budget") else [f"{keys.get('quit', '')} leaves"]
    queued = [one_line(row.id) for row in view.rows.unjudged if row.activity == "queued"]
    after = [f"next {queued[0]}" + (f" and {len(queued) - 1} more" if len(queued) > 1 else "")] if queued else []
    if view.task is None:
        count = f"{view.rounds} round{'s' if view.rounds > 1 else ''} of {view.group}"
        after.append(f"then {count}" if view.rounds else "then the first round")
    else:
        after.append(f"then round {view.round + 1} of {view.rounds}" if view.round < view.rounds else "then it is done")
    return after


def decision(view: View, keys: Mapping[str, str]) -> Content:
    """What waits for the person: the best candidate as long as nothing was decided about it."""
    best = view.row(view.best)
    if best is None:
        return Content("")
    if best.decision == "kept":
        return Content.assemble(
            (f"✓ {one_line(best.id)} is in ", "$muted"), (one_line(Path(best.path or "").name), "$primary")
        )
    if best.decision != "none":
        return Content("")
    here = view.selected == best.id
    key, does = ("accept", "accepts it") if here else ("best", "goes to it")
    return Content.assemble(
        ("decide ", "$warning bold"), (f"● {one_line(best.id)} ", "$best bold"),
        (words.speedup_text(best.speedup), f"${words.speed_ink(best.speedup, best.interval)} bold"),
        ("  ", ""), (keys.get(key, ""), "$primary bold"), (f" {does}", "$muted"),
    )  # fmt: skip


def _stage(row: Row, wall: float) -> str:
    waits = row.activity == "waiting"  # other work of this user is timed on the device just now
    told = f"{one_line(row.id)} waits for its turn" if waits else f"{row.activity} {one_line(row.id)}"
    if row.activity == "timing" and row.blocks:
        return f"{told}, block {row.blocks}"
    took = wall - row.since if row.since is not None else 0.0
    return f"{told}, {took:.0f} s" if took >= _SLOW_S else told


def _ended(view: View) -> str:
    if view.ending == "failed":
        return "a fault ended the run; all that was found is kept"
    if view.ending == "stopped":
        return "stopped; all that was found is kept"
    if view.best is not None:
        accepted = sum(row.verdict is not None and row.verdict.accepted for row in view.rows)
        spent = "the budget is spent" if view.ending == "budget" else "done"
        return f"{spent}: {accepted} of {len(view.rows)} accepted"
    counts = Counter(words.state_of(row, None)[1] for row in view.rows)
    reasons = ", ".join(f"{word} {count}" for word, count in counts.most_common(3))
    return f"done, nothing to take: {reasons}" if reasons else "done: the policy wrote nothing for this reference"
