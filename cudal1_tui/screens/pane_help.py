"""What the help says of each pane: what it is for, and which actions matter there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PaneHelp:
    """`actions` are ids of the table of actions."""

    text: str
    actions: tuple[str, ...]


_VIEW = ("code", "compare", "evidence", "next-pane", "enlarge")
ABOUT = {  # by the id of the pane, or by the view where the pane shows several
    "candidates": PaneHelp(
        "Every candidate in order of writing; a row never changes its place. checks is passed of all; "
        "interval is where the speedup lies with 95 % confidence. The selection follows the newest until you move it.",
        ("down", "up", "newest", "best", "accept", "reject", "feed", "undo", "mark"),
    ),
    "reference": PaneHelp(
        "The module you want faster: its class, shapes and weights, the time of a call in eager mode and under "
        "other baselines, and its code.",
        ("next-pane", "enlarge"),
    ),
    "code": PaneHelp(
        "The selected candidate's code, live while it is written. Arrow keys scroll, also sideways; scrolling up "
        "stops following, the end goes on with it. What is judged is exactly this text.",
        ("copy", "edit", "diff", *_VIEW),
    ),
    "diff": PaneHelp(
        "What the candidate changed: - was there before, + is new. It starts from the reference, the best or a "
        "marked candidate, and stands side by side in a pane of 120 columns.",
        ("against", "mark", "diff", "enlarge"),
    ),
    "correctness": PaneHelp(
        "Why the candidate counts as right, or why not: each check with its evidence, what failed first. Errors are "
        "relative to the output's scale; what is allowed comes from the reference's own error against float64.",
        ("evidence", "output", "enlarge"),
    ),
    "speed": PaneHelp(
        "The speedup on a scale from 0 where 1x marks the reference, its interval, each timed block as a bar, and "
        "the other baselines. Blue is faster, orange slower, and plain what its interval does not tell from 1.",
        ("evidence", "progress", "enlarge"),
    ),
    "plot": PaneHelp(
        "Speedup of each candidate on a logarithmic scale, with its interval and the best so far as a line. "
        "Crosses under the axis were rejected; r1, r2 mark where rounds begin.",
        ("progress", "techniques", "enlarge"),
    ),
    "evidence": PaneHelp(
        "All that the verdict rests on: checks, timing, device, sandbox, versions, and the command that judges the "
        "same file again.",
        ("copy", "output", *_VIEW),
    ),
    "progress": PaneHelp(
        "Speedup of each candidate on a logarithmic scale, and what each round brought.",
        ("best", "more", "techniques", *_VIEW),
    ),
    "techniques": PaneHelp("How often each technique was tried and accepted, and its best speedup.", _VIEW),
    "decisions": PaneHelp("What you decided, newest first, with the files that accepting wrote.", ("undo", *_VIEW)),
    "prompt": PaneHelp(
        "What the policy was asked in the round of the selected candidate, and the exemplars it was shown.", _VIEW
    ),
    "answer": PaneHelp("The policy's whole answer: its analysis and design before the code.", _VIEW),
    "output": PaneHelp(
        "The end of what building and running the candidate printed; a compiler's errors are here.", _VIEW
    ),
}
