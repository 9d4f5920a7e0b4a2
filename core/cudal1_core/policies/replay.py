"""Plays back candidates that already exist: a file, a folder, or JSON Lines.

JSON Lines may be the released CUDA-L1 rows (`ref_code`, `custom_code`), rows with `source` or `text`, or the
`events.jsonl` of an earlier run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cudal1_core.errors import PolicyError
from cudal1_core.policies.base import Fragment, Prompt
from cudal1_core.sources import bare, natural, read_rows


@dataclass(frozen=True, slots=True)
class Recorded:
    text: str
    title: str
    techniques: tuple[str, ...] = ()
    reference: str | None = None  # source the candidate was written for, where the row says so


class ReplayPolicy:
    """Each call of `generate` goes on where the last one ended."""

    name = "replay"
    converses = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left: Iterator[Recorded] | None = None

    async def prepare(self) -> None:
        """Nothing to start."""

    async def fit(self, texts: Sequence[str]) -> int:
        return 0  # no model reads it

    async def generate(self, prompt: Prompt, n: int) -> AsyncIterator[Fragment]:
        """At most n recorded candidates, each whole. Raises PolicyError where nothing fits the task."""
        if self._left is None:
            self._left = iter(_fitting(read_recorded(self._path), prompt.task.source, self._path))
        for index, recorded in zip(range(n), self._left, strict=False):
            yield Fragment(
                index=index,
                text=recorded.text,
                done=True,
                title=recorded.title,
                techniques=recorded.techniques,
            )

    async def close(self) -> None:
        """Nothing to end: there is no child."""


def read_recorded(path: Path) -> list[Recorded]:
    """Raises PolicyError for what cannot be read or holds no candidate."""
    try:
        if path.is_dir():
            found = [_from_file(file) for file in sorted(path.glob("*.py"), key=natural)]
        elif path.suffix in (".jsonl", ".ndjson"):
            found = list(_from_lines(path))
        else:
            found = [_from_file(path)]
    except OSError as error:
        raise PolicyError(f"Candidates cannot be read: {path}", error.strerror or str(error)) from error
    if not found:
        raise PolicyError(
            f"No candidates in {path}",
            "A folder needs .py files; JSON Lines need rows with custom_code, source or text.",
        )
    return found


def _fitting(recorded: list[Recorded], source: str, path: Path) -> list[Recorded]:
    """Rows that name their reference count for that reference alone; a single row is what the person means."""
    if len(recorded) == 1:
        return recorded
    fitting = [one for one in recorded if one.reference is None or bare(one.reference) == bare(source)]
    if not fitting:
        raise PolicyError(
            f"No candidate in {path} is for this reference",
            f"All {len(recorded)} rows name another ref_code.",
            "Give the reference exactly as the rows hold it, or rows without ref_code.",
        )
    return fitting


def _from_file(path: Path) -> Recorded:
    # Bytes that are not UTF-8 stay in place as surrogates: judging them is the referee's business.
    return Recorded(path.read_bytes().decode("utf-8", "surrogateescape"), path.stem)


def _from_lines(path: Path) -> Iterator[Recorded]:
    for number, row in read_rows(path.read_bytes(), path, PolicyError, cut=True):
        if recorded := _from_row(row, f"{path.stem}:{number}"):
            yield recorded


def _from_row(row: dict[str, Any], place: str) -> Recorded | None:
    if row.get("event") not in (None, "candidate_written"):
        return None
    nested = row.get("candidate")
    fields = nested if isinstance(nested, dict) else row
    text = next((fields[key] for key in ("custom_code", "text", "source") if fields.get(key)), None)
    if not isinstance(text, str):
        return None
    title = str(fields.get("title") or place)
    return Recorded(text, title, tuple(fields.get("techniques") or ()), fields.get("ref_code"))
