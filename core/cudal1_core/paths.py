"""Where a run keeps its files: `.cudal1/` in the working directory, with its own `.gitignore`."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from pathlib import Path

HOME = ".cudal1"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of one run; `path` is None where nothing can be written and the run lives in memory."""

    id: str  # "20261130-221544-7f3a"
    path: Path | None
    trouble: str = ""  # why there is no path

    @property
    def events(self) -> Path | None:
        return self.path / "events.jsonl" if self.path else None

    @property
    def logs(self) -> Path | None:
        return self.path / "logs" if self.path else None

    def source(self, candidate: str) -> Path | None:
        return self.path / f"{candidate}.py" if self.path else None


def home(working_directory: Path | None = None) -> Path:
    return (working_directory or Path.cwd()) / HOME


def archive_path(working_directory: Path | None = None) -> Path:
    return home(working_directory) / "archive.db"


def new_run_folder(working_directory: Path | None = None) -> RunFolder:
    """Makes `.cudal1/runs/<id>/`; where that cannot be written, the run goes on without a folder."""
    run = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    base = home(working_directory)
    try:
        folder = base / "runs" / run
        folder.mkdir(parents=True)
        (folder / "logs").mkdir()
        _ignore(base)
    except OSError as error:
        return RunFolder(run, None, f"{base}: {error.strerror or error}")
    return RunFolder(run, folder)


def new_archive_path(working_directory: Path | None = None) -> Path:
    """The archive's path, in a folder that is there. Raises OSError."""
    folder = home(working_directory)
    folder.mkdir(exist_ok=True)
    _ignore(folder)
    return archive_path(working_directory)


def new_bench_folder(working_directory: Path | None = None) -> Path:
    """Makes `.cudal1/bench/`, where results lie that were given no other place. Raises OSError."""
    folder = home(working_directory) / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    _ignore(folder.parent)
    return folder


def new_watch_folder(working_directory: Path | None = None) -> Path | None:
    """Makes `.cudal1/watch/`, where what a watch keeps between runs writes its logs; None where it cannot be made."""
    folder = home(working_directory) / "watch"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _ignore(folder.parent)
    except OSError:
        return None
    return folder


def _ignore(base: Path) -> None:
    ignore = base / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
