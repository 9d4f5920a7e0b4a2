"""Accepted files as they lie on disk: read their header, renew its figure, mark them where they are wrong.

Only the comment lines that `accept.header` wrote are ever replaced; the code stays as it is.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cudal1_core.accept import measured

if TYPE_CHECKING:
    from cudal1_core.verdict import Verdict

MARK = "# NO LONGER RIGHT"
_AGAIN = re.compile(r"^# judge it again: cudal1-tui verify (.+)$", re.MULTILINE)
_FIGURE = re.compile(r"^# (?:(?P<speedup>[\d.]+)x .*?as fast|speed not measured; judged the same) as (?P<rest>.+)$")
_HEAD_BYTES = 4096  # the header lies at the start


@dataclass(frozen=True, slots=True)
class Accepted:
    """A file that a person accepted, and what its header says."""

    path: Path
    reference: Path  # absolute; need not exist any more
    model: str | None  # name of the reference's class
    device: str  # that the figure was taken on; empty where the header does not say
    was: float | None  # speedup
    marked: bool  # as no longer right


def is_ours(path: Path) -> bool:
    """Whether the file is what accepting wrote, by its name or by its header."""
    if re.search(r"_optimized(_\d+)?$", path.stem):
        return True
    try:
        with path.open("rb") as stream:
            return b"# judge it again: cudal1-tui verify " in stream.read(_HEAD_BYTES)
    except OSError:
        return False


def read_accepted(path: Path) -> Accepted | None:
    """None where the file has no header of ours. Raises OSError."""
    head = _header(path.read_bytes().decode("utf-8", "replace"))[0]
    again = _AGAIN.search(head)
    if again is None:
        return None
    try:
        words = [word for word in shlex.split(again[1]) if not word.startswith("-")]
    except ValueError:
        return None
    if not words:
        return None
    figure = next((match for line in head.splitlines() if (match := _FIGURE.match(line))), None)
    model, device = None, ""
    if figure is not None and (names := re.search(r"\(([^()]+)\), on (.+)$", figure["rest"])):
        model, device = names[1], names[2]
    was = float(figure["speedup"]) if figure is not None and figure["speedup"] else None
    reference = Path(os.path.normpath(path.absolute().parent / words[0]))
    return Accepted(path, reference, model, device, was, head.startswith(MARK))


def accepted_of(reference: Path) -> list[Accepted]:
    """Every accepted file beside the reference that names it, in order of names."""
    found: list[Accepted] = []
    try:
        files = sorted(reference.parent.glob("*.py"))
    except OSError:
        return []
    for file in files:
        if file == reference or not is_ours(file):
            continue
        try:
            accepted = read_accepted(file)
        except OSError:
            continue
        if accepted is not None and accepted.reference == reference.absolute():
            found.append(accepted)
    return found


def renew(accepted: Accepted, verdict: Verdict) -> None:
    """Puts the verdict's figure into the header, or the mark where the file is wrong. Raises OSError.

    A verdict that says nothing about the code (`unjudgeable`) changes nothing.
    """
    if verdict.verdict == "unjudgeable":
        return
    text = accepted.path.read_bytes().decode("utf-8", "surrogateescape")
    head, body = _header(text)
    lines = [line for line in head.splitlines() if not line.startswith(MARK)]
    if verdict.accepted:
        lines = list(_renewed(lines, verdict))
    else:
        why = " ".join(f"{(verdict.category or '').replace('_', ' ')}: {verdict.reason or ''}".split())[:300]
        day = time.strftime("%Y-%m-%d")
        lines.insert(0, f"{MARK} as {accepted.reference.name} ({day}): {why}")
    _replace(accepted.path, ("\n".join(lines) + "\n" + body).encode("utf-8", "surrogateescape"))


def _renewed(lines: list[str], verdict: Verdict) -> Iterator[str]:
    """The header's lines with figure, device, versions and labels of now."""
    for line in lines:
        figure = _FIGURE.match(line)
        if figure is not None:
            names = figure["rest"].rpartition(", on ")[0] or figure["rest"]
            device = str(verdict.device.get("name") or "")
            yield f"# {measured(verdict)} as {names}" + (f", on {device}" if device else "")
        elif line.startswith("# versions: ") and verdict.versions:
            yield f"# versions: {', '.join(f'{name} {version}' for name, version in verdict.versions.items())}"
        elif line.startswith("# labels: "):
            continue
        elif line.startswith("# judge it again: ") and verdict.labels:
            yield f"# labels: {', '.join(verdict.labels)}"
            yield line
        else:
            yield line


def _header(text: str) -> tuple[str, str]:
    """The comment lines that open the file, up to the one that says how to judge it again, and the rest."""
    end = 0
    for line in text.splitlines(keepends=True):
        if not line.startswith("#"):
            break
        end += len(line)
        if line.startswith("# judge it again: "):
            break
    return text[:end], text[end:]


def _replace(path: Path, content: bytes) -> None:
    """Atomically, and only where something changes."""
    if path.read_bytes() == content:
        return
    target = path.resolve()
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(target.stat().st_mode & 0o777)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
