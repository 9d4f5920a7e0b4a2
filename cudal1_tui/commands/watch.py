"""`cudal1-tui watch`: every save of a reference becomes a run, in the workbench or headless."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from cudal1_core.accepted import accepted_of
from cudal1_core.archive import open_archive
from cudal1_core.errors import UsageError
from cudal1_core.paths import archive_path, new_run_folder, new_watch_folder
from cudal1_core.policies import WITH_MODEL
from cudal1_core.referee.host import Referee
from cudal1_core.rounds import Run
from cudal1_core.watch.parts import Spare
from cudal1_core.watch.selection import Selection
from cudal1_core.watch.session import Watching

from cudal1_tui import start
from cudal1_tui.headless import print_json
from cudal1_tui.progress import Progress

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from cudal1_core.events import Event
    from cudal1_core.watch.parts import Parts


def main(options: argparse.Namespace, problems: Sequence[object]) -> int:
    """Exit status 130 or 143 when it is stopped from outside. Tells `problems` of the settings. Raises UsageError."""
    from cudal1_tui.cli import why_no_screen

    selection = Selection(options.paths)
    if not options.headless and not options.json and (reason := why_no_screen()):
        print(f"cudal1-tui: {reason}, so this watch is headless.", file=sys.stderr)
        options.headless = True
    if not options.headless and not options.json:
        from cudal1_tui.watch_screen import main as screen

        return screen(options, selection)
    for problem in problems:
        print(f"cudal1-tui: {problem}", file=sys.stderr)
    if options.json:
        return asyncio.run(_headless(options, selection, print_json))
    with Progress(None) as progress:
        return asyncio.run(_headless(options, selection, progress.tell))


@contextmanager
def prepared_watch(options: argparse.Namespace, selection: Selection, *, keep_open: bool) -> Iterator[Watching]:
    """A watch that has not begun; the archive is closed at the end. Raises UsageError. Needs a running loop."""
    if options.update:
        raise UsageError("A watch does not train", "--update belongs to a run of one reference.", "Leave it out.")
    settings = start.run_options(options, keep_open=keep_open)
    logs = new_watch_folder()
    archive, trouble = open_archive(archive_path())

    def make_run(path: Path, parts: Parts) -> Run:
        referee, policy = parts
        folder = new_run_folder()
        referee.log_to(folder.logs)
        chosen = replace(settings, judge=referee.options)
        return Run(
            path, chosen, referee, policy, archive, folder,
            trouble=trouble, accepted=accepted_of(path), reviewer=start.reviewer_of(options),
        )  # fmt: skip

    spare = Spare(
        lambda: Referee(settings.judge),
        lambda: start.policy_of(options, logs),
        kept=options.policy in WITH_MODEL,
    )
    try:
        yield Watching(selection, make_run, spare, class_name=settings.judge.model, polling=options.poll)
    finally:
        archive.close()


async def _headless(options: argparse.Namespace, selection: Selection, tell: Callable[[Event], None]) -> int:
    with prepared_watch(options, selection, keep_open=False) as watching:
        loop, received = asyncio.get_running_loop(), list[int]()
        stopping: list[asyncio.Task[None]] = []

        def interrupt(number: int) -> None:
            received.append(number)
            if not stopping:
                stopping.append(loop.create_task(watching.stop()))

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupt, number)
        try:
            async for event in watching.events():
                tell(event)
        except BrokenPipeError:  # whoever read us has gone
            await watching.stop()
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 128 + signal.SIGPIPE
        finally:
            await watching.stop()
        return 128 + received[0] if received else 0
