"""Replays a recorded `events.jsonl` into the workbench and writes what it shows as SVG.

python -m cudal1_tui.screenshot OUT.svg --events FILE.jsonl --size 160x50
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from cudal1_core.events import Event, from_json

from cudal1_tui.app import DEFAULT_THEME, WorkbenchApp
from cudal1_tui.session import Session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from cudal1_core.events import Decision


_MOMENT_S = 0.1


class Recorded:
    """A run that is over; nothing can be asked of it."""

    paused = False

    async def events(self) -> AsyncIterator[Event]:
        told: tuple[Event, ...] = ()
        for event in told:
            yield event

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def decide(self, candidate_id: str, decision: Decision, path: Path | None = None) -> None: ...

    def extend(self, rounds: int) -> None: ...

    def update(self) -> None: ...

    async def stop(self) -> None: ...


def read_events(path: Path) -> list[Event]:
    """The events of a recorded run. Raises ValueError for a line that is none."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [from_json(line) for line in lines if line.strip()]


async def screenshot(
    events: Sequence[Event],
    size: tuple[int, int],
    *,
    select: str | None = None,
    keys: Sequence[str] = (),
    theme: str = DEFAULT_THEME,
) -> str:
    """The workbench after `events` and then `keys`, as SVG; `select` is a candidate's id, else the best."""
    last = events[-1].at if events else 0.0
    session = Session(Recorded(), clock=lambda: 1e9, wall=lambda: last)
    app = WorkbenchApp(session.run, session=session, theme=theme)
    async with app.run_test(size=size) as pilot:
        session.receive(events)
        session.select(select or session.view.best)
        app.workbench.draw()
        await pilot.press(*keys)
        drawn = ""
        while drawn != (again := app.export_screenshot(title="cudal1-tui", simplify=True)):  # until nothing moves
            drawn = again
            await pilot.pause(_MOMENT_S)
        return drawn


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m cudal1_tui.screenshot", description=__doc__)
    parser.add_argument("out", type=Path, help="the SVG file to write")
    parser.add_argument("--events", type=Path, required=True, help="events.jsonl of a run")
    parser.add_argument("--size", default="160x50", help="columns x rows (default %(default)s)")
    parser.add_argument("--select", metavar="ID", help="the candidate to show (default: the best)")
    parser.add_argument("--keys", default="", help="keys to press, with commas: d or tab,z")
    parser.add_argument("--theme", default=DEFAULT_THEME)
    options = parser.parse_args(argv)
    columns, rows = (int(part) for part in options.size.split("x"))
    keys = [key for key in options.keys.split(",") if key]
    events = read_events(options.events)
    drawn = asyncio.run(screenshot(events, (columns, rows), select=options.select, keys=keys, theme=options.theme))
    options.out.write_text(drawn, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
