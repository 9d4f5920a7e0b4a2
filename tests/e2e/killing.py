"""Kills a program that writes a run at a random moment, and compares what it showed with what is stored.

    python -m tests.e2e.killing [--times 50]

The program is a whole headless run with a scripted referee and policy, which both answer at once, so that kills fall
between any two system calls of journal and archive. Prints one line a kill and fails where anything shown is lost.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

from cudal1_core.archive import Archive
from cudal1_core.paths import archive_path, home
from cudal1_core.recall import recall
from cudal1_core.restoring import bring_in

ROOT = Path(__file__).parents[2]
LONGEST = 400  # lines after which a kill falls at the latest
_PROGRAM = """
import asyncio
from pathlib import Path
from cudal1_core.archive import Archive
from cudal1_core.paths import archive_path, new_run_folder
from cudal1_core.rounds import Run, RunOptions
from cudal1_tui.headless import print_json
from tests.unit.scripted import ScriptedPolicy, ScriptedReferee, whole

async def main():
    folder, archive = new_run_folder(), Archive(archive_path())
    policy = ScriptedPolicy([whole(f"a{n}", f"b{n}", f"c{n}") for n in range(1000)])
    run = Run(Path("/w/model.py"), RunOptions(rounds=1000), ScriptedReferee(), policy, archive, folder)
    async for event in run.events():
        print_json(event)
        if event.name == "verdict_reached":
            run.decide(event.candidate, "fed")

asyncio.run(main())
"""


def kill_once(folder: Path, seed: int) -> int:
    """Lines that were shown before the kill. Raises AssertionError where one of them, or its row, is lost."""
    rng = random.Random(seed)
    wanted = rng.randrange(1, LONGEST)
    command = [sys.executable, "-c", _PROGRAM]
    paths = [str(ROOT), *(str(ROOT / name) for name in ("core", "themes"))]
    environment = {"PYTHONPATH": ":".join(paths), "PATH": ""}
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, env=environment) as program:
        assert program.stdout is not None
        shown = [program.stdout.readline() for _ in range(wanted)]
        program.send_signal(signal.SIGKILL)
        shown += program.stdout.read().splitlines(keepends=True)  # what was in the pipe
    if shown and not shown[-1].endswith(b"\n"):
        shown.pop()
    run = json.loads(shown[0])["run"]
    log = home(folder) / "runs" / run / "events.jsonl"
    assert log.read_bytes().startswith(b"".join(shown)), "something that was shown is not in the log"
    recalled = recall(log)
    archive = Archive(archive_path(folder))
    for step in ("as it was left", "after a repair"):
        stored = {table: ids(archive, table, run) for table in ("candidates", "verdicts", "decisions")}
        for line in shown:
            event = json.loads(line)
            match event["event"]:
                case "candidate_written":
                    assert event["candidate"]["id"] in stored["candidates"], step
                case "verdict_reached":
                    assert event["candidate"] in stored["verdicts"], step
                    assert event["candidate"] in recalled.judged
                case "decision_made":
                    assert event["candidate"] in stored["decisions"], step
        bring_in(archive, home(folder) / "runs")
    archive.close()
    check = sqlite3.connect(archive_path(folder))
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    check.close()
    return len(shown)


def ids(archive: Archive, table: str, run: str) -> set[str]:
    column = "id" if table == "candidates" else "candidate"
    return {row[column] for row in archive.rows(f"SELECT {column} FROM {table} WHERE run = ?", run)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.times):
            print(f"kill {number + 1}: {kill_once(Path(folder), number)} lines shown, nothing lost")


if __name__ == "__main__":
    main()
