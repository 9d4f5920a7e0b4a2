"""What the person decides about candidates: carried out, told to the run, and taken back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cudal1_core.events import Decision
    from cudal1_core.reference import Task

    from cudal1_tui.bridge import RunHandle
    from cudal1_tui.view import Decided, Row


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence for the person."""

    text: str
    severity: Literal["information", "warning", "error"] = "information"


REPLACED = "replaced"  # folder in that of a run: what accepting took the place of, by candidate


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

    def recall(self, history: Sequence[Decided], rows: Iterable[Row], task: Task | None, folder: Path | None) -> None:
        """What can be taken back of decisions that were made before this program was started."""
        by_id = {row.id: row for row in rows}
        stands: dict[str, tuple[Decision, str | None]] = {}
        for made in history:
            before = stands.get(made.candidate, ("none", None))
            now: tuple[Decision, str | None] = (made.decision, made.path)
            stands[made.candidate] = now
            last = self.last
            if last is not None and last.candidate == made.candidate and (last.before, last.before_path) == now:
                self._past.pop()  # that was the last one taken back
                continue
            row = by_id.get(made.candidate)
            written = _written(task, row, made, folder) if made.decision == "kept" else None
            self._past.append(Past(made.candidate, before[0], before[1], written))

    def accept(self, task: Task, row: Row, path: Path, folder: Path | None, *, overwrite: bool = False) -> Note:
        """Writes the file. Raises FileExistsError, UsageError or OSError as `write_accepted` does.

        What it takes the place of is kept in the run's folder, so that it can come back after a restart.
        """
        from cudal1_core.accept import write_accepted

        assert row.candidate is not None
        assert row.verdict is not None
        replaced = path.read_bytes() if overwrite and path.is_file() else None
        if replaced is not None and folder is not None:
            kept = folder / REPLACED / f"{row.id}.py"
            kept.parent.mkdir(exist_ok=True)
            kept.write_bytes(replaced)
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
        if row.verdict is None and row.activity != "stopped":
            return Note(f"{row.id} is stopped and rejected; undo queues what is written.")
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


def _written(task: Task | None, row: Row | None, made: Decided, folder: Path | None) -> Written | None:
    """The file of an earlier acceptance, as it was written."""
    from cudal1_core.accept import content

    if task is None or row is None or row.candidate is None or row.verdict is None or made.path is None:
        return None
    replaced = None
    if folder is not None and (kept := folder / REPLACED / f"{row.id}.py").is_file():
        replaced = kept.read_bytes()
    path = Path(made.path)
    return Written(path, content(task, row.candidate, row.verdict, path), replaced)
