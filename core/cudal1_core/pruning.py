"""Keeps `.cudal1/` below a size: the oldest runs go first, what a person took stays."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from cudal1_core.archive import Archive
from cudal1_core.journal import is_at_work
from cudal1_core.paths import RunFolder

_OF_A_RUN = ("verdicts", "candidates", "rounds", "decisions", "advice")
_KEPT = """
SELECT DISTINCT d.run FROM decisions d WHERE d.decision IN ('kept', 'fed')
  AND d.id = (SELECT max(l.id) FROM decisions l WHERE l.run = d.run AND l.candidate = d.candidate)
"""


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was, or would be, deleted."""

    runs: tuple[str, ...]  # ids, oldest first
    before: int  # bytes of the whole folder
    after: int
    kept: int  # runs that stay because of decisions, or because they go on


def prune(archive: Archive, home: Path, limit: int, *, decided: bool = False, dry: bool = False) -> Pruned:
    """Deletes until the folder takes at most `limit` bytes, or nothing more may go. Raises OSError, sqlite3.Error.

    A run's share of the archive is taken as the share of its text; the file shrinks once, at the end.
    """
    before = size = _size(home)
    shares = _shares(archive)
    folders = {path.name: path for path in (home / "runs").glob("*") if path.is_dir()}
    kept = {row["run"] for row in archive.rows(_KEPT)}
    ids = sorted({*folders, *(row["id"] for row in archive.rows("SELECT id FROM runs"))})
    at_work = {id for id in ids if id in folders and is_at_work(RunFolder(id, folders[id]))}
    free = [id for id in ids if id not in at_work]
    order = [id for id in free if id not in kept] + ([id for id in free if id in kept] if decided else [])
    gone: list[str] = []
    for id in order:
        if size <= limit:
            break
        size -= (_size(folders[id]) if id in folders else 0) + shares.get(id, 0)
        gone.append(id)
        if not dry:
            _forget(archive, id)
            if id in folders:
                shutil.rmtree(folders[id])
    if gone and not dry:
        archive.shrink()
        size = _size(home)
    return Pruned(tuple(gone), before, max(size, 0), len(ids) - len(order))


def _forget(archive: Archive, run: str) -> None:
    with archive.together():
        for table in _OF_A_RUN:
            archive.rows(f"DELETE FROM {table} WHERE run = ?", run)
        archive.rows("DELETE FROM runs WHERE id = ?", run)


def _shares(archive: Archive) -> dict[str, int]:
    """Bytes that each run takes of the archive, about."""
    query = """
    SELECT c.run, sum(length(c.source) + length(c.text) + length(c.prompt) + coalesce(length(v.json), 0)) AS bytes
    FROM candidates c LEFT JOIN verdicts v ON v.run = c.run AND v.candidate = c.id GROUP BY c.run
    """
    return {row["run"]: row["bytes"] for row in archive.rows(query)}


def _size(folder: Path) -> int:
    """Bytes of all files in it; what goes away meanwhile counts nothing."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_size if not path.is_dir() else 0
        except OSError:
            continue
    return total
