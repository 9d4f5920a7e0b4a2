"""What the person decides about candidates: carried out, told to the run, and taken back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from cudal1_core.events import Decision
    from cudal1_core.reference import Task

    from cudal1_tui.bridge import RunHandle
    from cudal1_tui.view import Row


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence for the person."""

    text: str
    severity: Literal["information", "warning", "error"] = "information"


@dataclass(frozen=True, slots=True)
class Written:
    """A file that accepting wrote, and what it took the place of."""

    path: Path
    content: bytes
    replaced: bytes | None  # None where no file was there


@dataclass(frozen=True, slots=True)
class Past:
    """A decision that can be taken back."""

    candidate: str
    before: Decision
    before_path: str | None
    written: Written | None


class Decisions:
    """Carries decisions out in order; the last can be undone, then the one before."""

    def __init__(self, run: RunHandle) -> None:
        self._run = run
        self._past: list[Past] = []

    @property
    def last(self) -> Past | None:
        """What `undo` would take back."""
        return self._past[-1] if self._past else None

    def accept(self, task: Task, row: Row, path: Path, *, overwrite: bool = False) -> Note:
        """Writes the file. Raises FileExistsError, UsageError or OSError as `write_accepted` does."""
        from cudal1_core.accept import write_accepted

        assert row.candidate is not None
        assert row.verdict is not None
        replaced = path.read_bytes() if overwrite and path.is_file() else None
        written = write_accepted(task, row.candidate, row.verdict, path=path, overwrite=overwrite)
        self._past.append(Past(row.id, row.decision, row.path, Written(written, written.read_bytes(), replaced)))
        self._run.decide(row.id, "kept", written)
        return Note(f"{row.id} accepted: written to {written.name}. u takes it back.")

    def mark(self, row: Row, decision: Literal["dismissed", "fed"]) -> Note:
        """A decision that writes nothing."""
        self._past.append(Past(row.id, row.decision, row.path, None))
        self._run.decide(row.id, decision, None)
        if decision == "fed":
            return Note(f"{row.id} goes into the next round.")
        stays = f" {Path(row.path).name} stays where it is." if row.path else ""
        return Note(f"{row.id} rejected.{stays}")

    def undo(self) -> Note:
        """Takes back the last decision; a file only if nobody changed it since."""
        if not self._past:
            return Note("Nothing to undo.", "warning")
        past = self._past.pop()
        said, severity = self._unwrite(past.written)
        self._run.decide(past.candidate, past.before, Path(past.before_path) if past.before_path else None)
        return Note(f"Decision on {past.candidate} taken back{said}.", severity)

    def _unwrite(self, written: Written | None) -> tuple[str, Literal["information", "warning"]]:
        if written is None:
            return "", "information"
        name = written.path.name
        try:
            if written.path.read_bytes() != written.content:
                return f"; {name} was changed since and stays", "warning"
            if written.replaced is None:
                written.path.unlink()
                return f"; {name} deleted", "information"
            written.path.write_bytes(written.replaced)
        except FileNotFoundError:
            return f"; {name} was gone already", "information"
        except OSError as error:
            return f"; {name} stays: {error.strerror}", "warning"
        return f"; {name} is as it was before", "information"
