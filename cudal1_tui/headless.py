"""A run without a screen: progress on standard error, the result on standard output."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from cudal1_core.accept import write_accepted
from cudal1_core.errors import Cudal1Error, exit_status
from cudal1_core.events import Event, RunFinished, to_json

from cudal1_tui.progress import Progress

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from cudal1_core.rounds import Run


def main(options: argparse.Namespace) -> int:
    """Exit status 0 something accepted, 1 nothing, 2 bad reference or usage, 3 internal, 130 interrupted."""
    from cudal1_tui.start import prepared_run

    with prepared_run(options) as run:
        if options.json:
            return asyncio.run(drive(run, print_json, options.out, options.overwrite))
        progress = Progress(run)
        with progress:
            status = asyncio.run(drive(run, progress.tell, options.out, options.overwrite))
        progress.print_result(options.out)
        return status


async def drive(run: Run, tell: Callable[[Event], None], out: Path | None, overwrite: bool) -> int:
    """Plays the run to its end, tells every event, and writes the best to `out`."""
    signals = Interruption(run)
    events = run.events()
    try:
        async for event in events:
            tell(event)
            if isinstance(event, RunFinished) and not run.is_past(event):
                if out is not None:
                    _write_best(run, out, overwrite)
                await run.close()
    except BrokenPipeError:  # whoever read us has gone
        await run.close()
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    finally:
        await run.close()
        signals.restore()
    if signals.received:
        return 128 + signals.received
    if run.error is not None:
        return exit_status(run.error)
    if out is not None:
        return 0 if "kept" in run.decisions.values() else 1
    return 0 if any(judged.verdict.accepted for judged in run.judged.values()) else 1


def print_json(event: Event) -> None:
    sys.stdout.buffer.write(to_json(event).encode("utf-8", "replace") + b"\n")
    sys.stdout.buffer.flush()


class Interruption:
    """Ctrl+C and SIGTERM stop the run in order; `received` is the first signal's number."""

    def __init__(self, run: Run) -> None:
        self.received = 0
        self._run = run
        self._loop = asyncio.get_running_loop()
        self._stopping: asyncio.Task[None] | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(number, self._stop, number)

    def _stop(self, number: int) -> None:
        self.received = self.received or number
        if self._stopping is None:
            self._stopping = self._loop.create_task(self._run.stop())

    def restore(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.remove_signal_handler(number)


def _write_best(run: Run, out: Path, overwrite: bool) -> None:
    best = run.best
    if best is None or run.task is None:
        return
    try:
        path = write_accepted(run.task, best.candidate, best.verdict, path=out, overwrite=overwrite)
    except (Cudal1Error, OSError) as error:
        print(f"cudal1-tui: {out} could not be written: {error}", file=sys.stderr)
        return
    run.decide(best.candidate.id, "kept", path)
