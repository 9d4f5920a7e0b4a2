"""`cudal1-tui check`: is everything that was accepted still right, and still faster?"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from cudal1_core.checking import check, find
from cudal1_core.errors import Cudal1Error
from cudal1_core.plain import one_line
from cudal1_core.referee.options import JudgeOptions

from cudal1_tui.commands.check_arguments import check_parser
from cudal1_tui.words import DASH, STANDINGS, interval_text, speedup_text

if TYPE_CHECKING:
    import argparse

    from cudal1_core.accepted import Accepted
    from cudal1_core.events import AcceptedJudged

PIPE_WIDTH = 120  # columns where standard output is no terminal


def main(words: list[str]) -> int:
    """Exit status 0 all right and none slower, 1 some are not, 2 wrong usage, 3 the referee itself failed.

    With --json, standard output is exactly one object.
    """
    as_json = "--json" in words
    try:
        options = check_parser().parse_args(words[1:])
        files = find(options.paths)
        results, stopped = asyncio.run(_check(files, options))
    except Cudal1Error as error:
        print(error, file=sys.stderr)
        if as_json:
            print(json.dumps({"files": [], "error": error.title}))
        return error.exit_status
    if as_json:
        counts = Counter(result.state for result in results)
        print(json.dumps({"files": [_row(result) for result in results], "counts": counts}, allow_nan=False))
    elif files:
        _print(results)
    else:
        named = ", ".join(str(path) for path in options.paths)
        print(f"Nothing accepted in {named}: there is nothing to judge again.")
    if stopped:
        return 128 + stopped
    return 0 if all(result.state in ("faster", "right") for result in results) else 1


async def _check(files: list[Accepted], options: argparse.Namespace) -> tuple[list[AcceptedJudged], int]:
    """What was judged, and the number of the signal that ended it; 0 where none did."""
    loop, task, received = asyncio.get_running_loop(), asyncio.current_task(), list[int]()
    assert task is not None

    def interrupt(number: int) -> None:  # cancelling lets the referee end its children
        received.append(number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt, number)
    judging = JudgeOptions(
        device=options.device,
        model=options.model,
        timeout_s=options.timeout,
        build_timeout_s=options.build_timeout,
        allow_precision=options.allow_precision,
        allow_output_reuse=options.allow_output_reuse,
    )
    results: list[AcceptedJudged] = []
    try:
        async for result in check(files, judging, write=options.renew):
            results.append(result)
            print(f"{len(results)}/{len(files)} {_line(result)}", file=sys.stderr, flush=True)
    except asyncio.CancelledError:
        return results, received[0]
    return results, 0


def _line(result: AcceptedJudged) -> str:
    figure = f" {speedup_text(result.speedup)}" if result.speedup is not None else ""
    why = f": {one_line(result.reason)}" if result.reason else ""
    return f"{_name(result.path)} {STANDINGS[result.state]}{figure}{why}"


def _row(result: AcceptedJudged) -> dict[str, object]:
    return {key: value for key, value in asdict(result).items() if key != "at"}


def _print(results: list[AcceptedJudged]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPE_WIDTH)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("file", overflow="fold")
    table.add_column("state", no_wrap=True)
    for heading in ("speedup", "interval", "was"):
        table.add_column(heading, no_wrap=True, justify="right")
    for result in results:
        table.add_row(
            Text(_name(result.path)),
            STANDINGS[result.state],
            speedup_text(result.speedup),
            interval_text(result.interval) or DASH,
            speedup_text(result.was),
        )
    console.print(table)
    counts: Counter[str] = Counter(result.state for result in results)
    console.print(Text(", ".join(f"{counts[state]} {word}" for state, word in STANDINGS.items() if counts[state])))


def _name(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else str(Path(relative))
