"""The one table of actions: it feeds key bindings, the key line, the help, the palette and the docs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, slots=True)
class Action:
    """Something a person can do on the workbench."""

    id: str  # also the name to rebind it by
    keys: tuple[str, ...]  # Textual key names; the first is the one shown
    call: str  # what Textual runs, without "action_"
    description: str  # one or two words, for the key line
    tooltip: str  # a sentence
    shown: Literal["always", "wide", "never"] = "never"  # on the key line


ACTIONS = (
    Action("accept", ("a",), "accept", "accept", "Write the candidate to <stem>_optimized.py.", "always"),
    Action("reject", ("x",), "reject", "reject", "Dismiss the candidate; one without a verdict is stopped.", "always"),
    Action("feed", ("f",), "feed", "feed", "Show the candidate to the policy in the next round.", "always"),
    Action("undo", ("u",), "undo", "undo", "Take back the last decision, and the file it wrote.", "wide"),
    Action("pause", ("space",), "pause", "pause", "Pause or resume the run.", "always"),
    Action("diff", ("d",), "diff", "diff", "Compare with the reference, or go back to the code.", "always"),
    Action("against", ("D",), "against", "against", "Compare with the reference, the best, or the marked one."),
    Action("mark", ("m",), "mark", "mark", "Mark the candidate, to compare others with it."),
    Action("more", ("n",), "more", "one more", "Run one more round once the run is done."),
    Action(
        "train", ("T",), "train", "train", "Train the policy's model on what has been judged, before the next round."
    ),
    Action("down", ("j", "down"), "move('down')", "next", "Select the next candidate."),
    Action("up", ("k", "up"), "move('up')", "previous", "Select the previous candidate."),
    Action("top", ("g", "home"), "move('top')", "first", "Select the first candidate."),
    Action("newest", ("G", "end"), "move('newest')", "newest", "Select the newest candidate and follow."),
    Action("best", ("b",), "best", "best", "Jump to the best candidate.", "wide"),
    Action("code", ("1",), "view('code')", "code", "Show the candidate's code."),
    Action("compare", ("2",), "view('diff')", "diff", "Show the difference from what it is compared with."),
    Action("evidence", ("3",), "view('evidence')", "evidence", "Show the checks and the timing."),
    Action("progress", ("4",), "view('progress')", "progress", "Plot the speedup of every candidate."),
    Action("techniques", ("5",), "view('techniques')", "techniques", "Show what each technique gained."),
    Action("decisions", ("6",), "view('decisions')", "decisions", "Show what was decided, newest first."),
    Action("prompt", ("7",), "view('prompt')", "prompt", "Show the prompt of the round and its exemplars."),
    Action("answer", ("8",), "view('answer')", "answer", "Show the policy's whole answer, analysis and all."),
    Action("output", ("9",), "view('output')", "output", "Show what building and running the candidate printed."),
    Action(
        "next-pane",
        ("tab",),
        "app.focus_next",
        "next pane",
        "Go to the next pane; shift+tab goes back.",
        "wide",
    ),
    Action(
        "enlarge",
        ("z", "enter"),
        "enlarge",
        "enlarge",
        "Give the pane the whole screen, or shrink it.",
        "wide",
    ),
    Action("copy", ("y",), "copy", "copy", "Copy the candidate's code.", "wide"),
    Action("edit", ("o",), "edit", "open", "Open a copy of the candidate's code in $EDITOR."),
    Action("export", ("e",), "export", "export", "Write the run as report.md and report.html."),
    Action("back", ("escape",), "back", "back", "Shrink an enlarged pane, or put a message away."),
    Action("suspend", ("ctrl+z",), "app.suspend_process", "suspend", "Go to the shell; fg comes back."),
    Action("palette", ("colon", "ctrl+p"), "app.command_palette", "palette", "Find any action by a word, or a theme."),
    Action("help", ("question_mark", "f1"), "help", "help", "Show keys, glyphs and labels.", "always"),
    Action("quit", ("q", "ctrl+q"), "app.quit", "quit", "Leave; asks while work is running.", "always"),
)
IDS = tuple(action.id for action in ACTIONS)
_NAMES = {"question_mark": "?", "colon": ":", "escape": "esc", "f1": "F1"}
DECISIONS = ("accept", "reject", "feed")


def key_name(key: str) -> str:
    """A key as a person reads it on a keyboard."""
    return _NAMES.get(key, key)


def rebound(keys: Mapping[str, str]) -> tuple[tuple[Action, ...], list[str]]:
    """The table with other keys by id, and a sentence for each that would take a key from another action."""
    asked = {id: tuple(key.strip() for key in to.split(",") if key.strip()) for id, to in keys.items()}
    taken = {key: action.id for action in ACTIONS if not asked.get(action.id) for key in action.keys}
    problems: list[str] = []
    found: list[Action] = []
    for action in ACTIONS:
        wanted = asked.get(action.id, ())
        if clash := next((key for key in wanted if taken.get(key, action.id) != action.id), None):
            problems.append(f"keys.{action.id}: {clash!r} is the key of {taken[clash]}; {action.id} keeps its own")
            wanted = ()
        if wanted:
            taken.update(dict.fromkeys(wanted, action.id))
        found.append(replace(action, keys=wanted or action.keys))
    return tuple(found), problems


def keys_text(actions: Iterable[Action] = ACTIONS) -> str:
    """The table of keys as lines for a terminal: keys, id, sentence."""
    return "\n".join(
        f"{' '.join(key_name(key) for key in action.keys):<12} {action.id:<11} {action.tooltip}" for action in actions
    )


def keys_table() -> str:
    """The table of keys as Markdown, for the docs."""
    lines = ["| key | action | what it does |", "| --- | --- | --- |"]
    for action in ACTIONS:
        keys = ", ".join(f"`{key_name(key)}`" for key in action.keys)
        lines.append(f"| {keys} | {action.description} | {action.tooltip.replace('<', '`<', 1)} |")
    return "\n".join(lines).replace("`<stem>_optimized.py", "`<stem>_optimized.py`")
