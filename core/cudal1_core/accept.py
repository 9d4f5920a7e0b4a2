"""Write an accepted candidate beside its reference: atomically, never over a file without being told to."""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cudal1_core.errors import UsageError

if TYPE_CHECKING:
    from cudal1_core.candidate import Candidate
    from cudal1_core.reference import Task
    from cudal1_core.verdict import Verdict


def accepted_path(task: Task) -> Path:
    """`<stem>_optimized.py` beside the reference."""
    reference = Path(task.path)
    return reference.with_name(f"{reference.stem}_optimized.py")


def free_path(wanted: Path) -> Path:
    """`wanted` where nothing has that name, else the first free of `<stem>_2.py`, `<stem>_3.py`, …"""
    path, number = wanted, 2
    while path.exists() or path.is_symlink():
        path = wanted.with_name(f"{wanted.stem}_{number}{wanted.suffix}")
        number += 1
    return path


def why_not(verdict: Verdict | None) -> str | None:
    """Why a candidate cannot be accepted, in a sentence; None where it can."""
    if verdict is None:
        return "It has not been judged yet."
    if verdict.accepted:
        return None
    word = (verdict.category or verdict.verdict).replace("_", " ")
    return f"The referee's verdict is {verdict.verdict}: {word}."


def header(task: Task, candidate: Candidate, verdict: Verdict, path: Path) -> str:
    """The comment lines that open an accepted file, each ending in a newline."""
    device = str(verdict.device.get("name") or task.device_name)
    versions = ", ".join(f"{name} {version}" for name, version in verdict.versions.items())
    reference = Path(task.path)
    again = f"cudal1-tui verify {_argument(reference, path)} {_argument(path, path)}"
    lines = [
        f"{measured(verdict)} as {reference.name} ({task.model}), on {device}",
        f"candidate {candidate.id}, written by {candidate.policy}",
        f"versions: {versions}" if versions else "",
        f"labels: {', '.join(verdict.labels)}" if verdict.labels else "",
        f"judge it again: {again}",
    ]
    return "".join(f"# {' '.join(line.split())}\n" for line in lines if line)


def content(task: Task, candidate: Candidate, verdict: Verdict, path: Path) -> bytes:
    """The whole file: header and source."""
    return (header(task, candidate, verdict, path) + "\n" + candidate.source.rstrip() + "\n").encode()


def write_accepted(
    task: Task, candidate: Candidate, verdict: Verdict, *, path: Path | None = None, overwrite: bool = False
) -> Path:
    """Write header and source to `path`, by default `accepted_path(task)`; returns the path written.

    Raises FileExistsError where the file is there and `overwrite` is False, UsageError where the verdict is
    not accepted or the path is the reference itself, OSError where the folder cannot be written.
    """
    reason = why_not(verdict)
    if reason is not None:
        raise UsageError(f"{candidate.id} cannot be accepted", reason)
    target = path if path is not None else accepted_path(task)
    if target.resolve() == Path(task.path).resolve():
        raise UsageError(f"{target.name} is the reference", "Accepting never replaces the reference.")
    _write_atomically(
        target, content(task, candidate, verdict, target), overwrite=overwrite, mode=_mode_of(Path(task.path))
    )
    return target


def measured(verdict: Verdict) -> str:
    """The figure of a header: `2.00x [1.95, 2.05] as fast`."""
    if verdict.speedup is None:
        return "speed not measured; judged the same"
    interval = verdict.speedup_interval
    spread = f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else ""
    return f"{verdict.speedup:.2f}x{spread} as fast"


def _argument(file: Path, beside: Path) -> str:
    """A file as a person types it: its name alone when it lies in the folder of `beside`."""
    same_folder = file.resolve().parent == beside.resolve().parent
    return shlex.quote(file.name if same_folder else str(file.resolve()))


def _mode_of(reference: Path) -> int:
    try:
        return reference.stat().st_mode & 0o666
    except OSError:
        return 0o644


def _write_atomically(target: Path, content: bytes, *, overwrite: bool, mode: int) -> None:
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(mode)
        if overwrite:
            temporary.replace(target)
        else:
            _link_new(temporary, target, content)
    finally:
        temporary.unlink(missing_ok=True)


def _link_new(temporary: Path, target: Path, content: bytes) -> None:
    """Give the finished file its name, failing where the name is taken."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        with target.open("xb") as stream:
            stream.write(content)
