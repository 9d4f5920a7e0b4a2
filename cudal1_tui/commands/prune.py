"""`cudal1-tui prune`: keeps `.cudal1/` below a size."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from cudal1_core.archive import Archive, unusable
from cudal1_core.errors import UsageError
from cudal1_core.paths import archive_path, home
from cudal1_core.pruning import prune

if TYPE_CHECKING:
    import argparse


def main(options: argparse.Namespace) -> int:
    """Exit status 0 where the folder is below the size, 1 where what stays takes more. Raises UsageError."""
    path = archive_path()
    if not path.exists():
        raise UsageError(f"There is no archive in {home()}", "", "There is nothing to prune.")
    archive = Archive(path)
    try:
        done = prune(archive, home(), options.max_size, decided=options.decided, dry=options.dry_run)
    except sqlite3.Error as error:
        raise unusable(path, error) from error
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be deleted: {error.strerror}") from error
    finally:
        archive.close()
    for run in done.runs:
        print(f"{'would delete' if options.dry_run else 'deleted'} {run}")
    print(f"{_mega(done.before)} before, {_mega(done.after)} after; {done.kept} runs stay in any case")
    if done.after > options.max_size:
        more = "" if options.decided else " --decided deletes runs with decisions too."
        print(f"That is more than {_mega(options.max_size)}.{more}")
        return 1
    return 0


def _mega(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
