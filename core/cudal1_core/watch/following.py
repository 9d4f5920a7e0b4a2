"""Which references there are, and what a burst of changes means for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cudal1_core.watch.reading import UnreadableError, may_be_reference, read
from cudal1_core.watch.selection import Selection

State = Literal["changed", "unchanged", "unreadable", "gone"]


@dataclass(frozen=True, slots=True)
class Seen:
    """One reference after a burst."""

    path: Path
    state: State
    message: str = ""


class Following:
    """Reads files; blocking, so it belongs in a thread. One call at a time."""

    def __init__(self, selection: Selection, class_name: str | None = None) -> None:
        self._selection = selection
        self._class_name = class_name
        self._fingerprints: dict[Path, str] = {}  # empty: to be worked on whatever it holds
        self._messages: dict[Path, str] = {}  # of what cannot be read as it stands
        self._helpers: dict[Path, frozenset[Path]] = {}

    @property
    def references(self) -> int:
        return len(self._fingerprints)

    @property
    def helpers(self) -> set[Path]:
        return set().union(*self._helpers.values())

    def start(self) -> list[Seen]:
        """Reads everything. Files that were named count as changed, those in folders when they are saved."""
        found: list[Seen] = []
        for path in dict.fromkeys(self._selection.walk()):
            named = path in self._selection.files
            if named or may_be_reference(path):
                found += [seen for seen in self._read(path) if named]
        return found

    def amid_a_save(self, batch: Iterable[Path]) -> bool:
        """Whether a reference is away or empty, as it is for a moment between two steps of many editors."""
        return any(_away(path) for path in batch if path in self._fingerprints)

    def look(self, batch: Iterable[Path]) -> list[Seen]:
        """What the changed paths mean; nothing for files that are no reference and never were one."""
        return [seen for path in dict.fromkeys(self._meant(batch)) for seen in self._read(path)]

    def forget(self, path: Path) -> None:
        """The next save counts, also of the same content: its run was cut off."""
        if path in self._fingerprints:
            self._fingerprints[path] = ""

    def _meant(self, batch: Iterable[Path]) -> Iterator[Path]:
        known = {*self._fingerprints, *self._messages, *self._selection.files}
        real = {file.resolve(): file for file in self._selection.files}
        for path in batch:
            if path.name == ".gitignore":
                self._selection.forget(path)
                continue
            if path.suffix != ".py":  # a folder, or what was one
                yield from (file for file in known if file.is_relative_to(path))
                if path.is_dir() and any(path.is_relative_to(root) for root in self._selection.folders):
                    yield from self._selection.walk(path)
                continue
            yield from (reference for reference, helpers in self._helpers.items() if path in helpers)
            if path in real:
                yield real[path]
            if self._selection.takes(path) and (path in known or may_be_reference(path)):
                yield path

    def _read(self, path: Path) -> list[Seen]:
        named = path in self._selection.files
        known = named or path in self._fingerprints or path in self._messages
        try:
            reading = read(path, self._class_name)
        except FileNotFoundError:
            if path not in self._fingerprints and path not in self._messages:
                return []
            self._fingerprints[path] = ""
            self._messages.pop(path, None)
            if not named:
                del self._fingerprints[path]
                self._helpers.pop(path, None)
            return [Seen(path, "gone", f"{path.name} is gone; its next save is waited for")]
        except UnreadableError as error:
            return self._unreadable(path, str(error))
        if reading is None:
            wanted = self._class_name or "Model"
            message = f"{path.name} defines no class {wanted} with get_inputs() yet"
            return self._unreadable(path, message) if known else []
        clear = self._messages.pop(path, None) is not None
        self._helpers[path] = reading.helpers
        if self._fingerprints.get(path) == reading.fingerprint:
            return [Seen(path, "unchanged", "reads again" if clear else "only comments or spacing differ")]
        self._fingerprints[path] = reading.fingerprint
        return [Seen(path, "changed")]

    def _unreadable(self, path: Path, message: str) -> list[Seen]:
        """Told once for each reason, however often the file is saved."""
        self._fingerprints.setdefault(path, "")
        if self._messages.get(path) == message:
            return []
        self._messages[path] = message
        return [Seen(path, "unreadable", message)]


def _away(path: Path) -> bool:
    try:
        return path.stat().st_size == 0
    except OSError:
        return True
