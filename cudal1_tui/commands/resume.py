"""`cudal1-tui resume`: a stored run goes on, with what it found and what was decided."""

from __future__ import annotations

import sys
from pathlib import Path

from cudal1_core.recall import recall
from cudal1_core.reference_file import read_reference

from cudal1_tui.commands.export import events_file
from cudal1_tui.commands.past_arguments import resume_parser


def main(words: list[str]) -> int:
    """Exit status as of a run. Raises UsageError."""
    from cudal1_tui.cli import why_no_screen

    parser = resume_parser()
    events = events_file(parser.parse_args(words[1:]).run)
    recalled = recall(events)
    started = recalled.started
    model = recalled.task.model if recalled.task else "Model"
    parser.set_defaults(
        policy=started.policy,
        device=started.device,
        group=started.group,
        rounds=max(started.rounds, recalled.round),
        class_name=None if model == "Model" else model,
    )
    options = parser.parse_args(words[1:])
    options.recalled, options.folder = recalled, events.resolve().parent
    options.module = Path(started.reference)
    read_reference(options.module)
    if not options.headless and not options.json and (reason := why_no_screen()):
        print(f"cudal1-tui: {reason}, so this run is headless.", file=sys.stderr)
        options.headless = True
    if options.headless or options.json:
        from cudal1_tui.headless import main as headless

        return headless(options)
    from cudal1_tui.workbench import main as workbench

    return workbench(options)
