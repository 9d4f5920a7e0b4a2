"""Which files the watch looks at: what was named, and in folders what .gitignore leaves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pathspec import GitIgnoreSpec

from cudal1_core.accepted import is_ours
from cudal1_core.errors import UsageError
from cudal1_core.paths import HOME

_NEVER = frozenset({HOME, "__pycache__", "node_modules", "site-packages"})


class Selection:
    """The paths that a person named. Raises UsageError where one cannot be watched."""

    def __init__(self, paths: list[Path]) -> None:
        self.files: list[Path] = []
        self.folders: list[Path] = []
        for path in paths:
            _look(path)
            (self.folders if path.is_dir() else self.files).append(path.absolute())
        self._rules: dict[Path, GitIgnoreSpec | None] = {}

    def takes(self, path: Path) -> bool:
        """Whether the file was named, or lies in a named folder and is neither ignored nor ours."""
        if path in self.files:
            return True
        if path.suffix != ".py":
            return False
        return any(self._lets_through(path, folder) for folder in self.folders if path.is_relative_to(folder))

    def walk(self, root: Path | None = None) -> Iterator[Path]:
        """Every Python file that is there now, of `root` or of everything; what cannot be read is passed over."""
        if root is None:
            yield from self.files
        for folder in self.folders if root is None else [root]:
            for place, names, files in os.walk(folder):
                here = Path(place)
                names[:] = [name for name in names if self.enters(here / name)]
                yield from (here / name for name in files if name.endswith(".py") and self.takes(here / name))

    def enters(self, folder: Path) -> bool:
        """Whether a folder inside a named one is looked into."""
        if folder.name in _NEVER or folder.name.startswith(".") or (folder / "pyvenv.cfg").is_file():
            return False
        return not any(self._ignores(folder, root, "/") for root in self.folders if folder.is_relative_to(root))

    def ignores(self, path: Path) -> bool:
        """Whether a .gitignore leaves the file out."""
        return any(self._ignores(path, root, "") for root in self.folders if path.is_relative_to(root))

    def forget(self, rules: Path) -> None:
        """A .gitignore was changed."""
        self._rules.pop(rules.parent, None)

    def _lets_through(self, path: Path, root: Path) -> bool:
        parts = path.relative_to(root).parts
        if any(part in _NEVER or part.startswith(".") for part in parts):
            return False
        if is_ours(path):
            return False
        return not self._ignores(path, root, "")

    def _ignores(self, path: Path, root: Path, mark: str) -> bool:
        """By the .gitignore files from the repository's root down to the path; a later file wins."""
        ignored = False
        for folder in reversed(_above(path, _repository(root))):
            rules = self._of(folder)
            if rules is not None:
                result = rules.check_file(path.relative_to(folder).as_posix() + mark).include
                ignored = ignored if result is None else result
        return ignored

    def _of(self, folder: Path) -> GitIgnoreSpec | None:
        if folder not in self._rules:
            try:
                lines = (folder / ".gitignore").read_text(encoding="utf-8", errors="replace").splitlines()
                self._rules[folder] = GitIgnoreSpec.from_lines(lines)
            except (OSError, ValueError):
                self._rules[folder] = None
        return self._rules[folder]


def _above(path: Path, top: Path) -> list[Path]:
    """Folders from the path's own up to `top`."""
    folders = [path.parent]
    while folders[-1] != top and folders[-1] != folders[-1].parent:
        folders.append(folders[-1].parent)
    return folders


def _repository(folder: Path) -> Path:
    """The root of the git repository that holds the folder, else the folder."""
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)


def _look(path: Path) -> None:
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder", "There is nothing to watch.", "Check the path.")
    if path.is_dir():
        if not os.access(path, os.R_OK | os.X_OK):
            raise UsageError(f"{path} cannot be read: Permission denied", "", "Look at the folder's permissions.")
        return
    if path.suffix != ".py":
        raise UsageError(f"{path} is not a .py file", "", "Watch a Python file that defines a module, or a folder.")
    if not os.access(path, os.R_OK):
        raise UsageError(f"{path} cannot be read: Permission denied", "", "Look at the file's permissions.")
    if is_ours(path):
        raise UsageError(f"{path} is what accepting wrote", "It is never a reference.", "Watch the reference itself.")
