"""Brings into the archive what it lacks of the runs' own logs: after a kill, or while another process held it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from cudal1_core.archive import Archive, is_held
from cudal1_core.events import DecisionMade, from_json
from cudal1_core.journal import is_at_work
from cudal1_core.paths import RunFolder

_PASSED_OVER = ('{"event": "token_arrived"', '{"event": "timing_sampled"', '{"event": "check_finished"')


def bring_in(archive: Archive, runs: Path) -> None:
    """Runs that ended in order, or that go on now, are left alone. Raises sqlite3.Error."""
    if archive.read_only or not runs.is_dir():
        return
    ended = {row["id"] for row in archive.rows("SELECT id FROM runs WHERE finished IS NOT NULL")}
    for folder in sorted(path for path in runs.iterdir() if path.name not in ended):
        log = folder / "events.jsonl"
        if not log.is_file() or is_at_work(RunFolder(folder.name, folder)):
            continue
        try:
            _bring_in(archive, folder.name, log)
        except (OSError, sqlite3.Error) as error:
            if isinstance(error, sqlite3.Error) and not is_held(error):
                raise


def _bring_in(archive: Archive, run: str, log: Path) -> None:
    query = "SELECT candidate, made FROM decisions WHERE run = ?"
    decided = {(row["candidate"], row["made"]) for row in archive.rows(query, run)}
    with archive.together():
        for line in log.read_bytes().decode("utf-8", "replace").split("\n"):
            if not line.strip() or line.startswith(_PASSED_OVER):
                continue
            try:
                event = from_json(line)
            except (ValueError, TypeError, KeyError):  # cut off by a kill
                continue
            if not (isinstance(event, DecisionMade) and (event.candidate, event.at) in decided):
                archive.record(run, event)
