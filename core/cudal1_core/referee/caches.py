"""What the compiler of one worker made, carried to the next worker of the same candidate.

Packed by process 1 of the one worker once nothing of it runs any more, unpacked by process 1 of the other before
anything runs there. Names and contents are the candidate's own; what the archive may hold is decided here.
"""

from __future__ import annotations

import os
import stat
import tarfile
from pathlib import Path

KEPT = ".cache/torch_extensions"  # in a worker's folder; others hold nothing without a GPU
MOST_BYTES = 1 << 29
MOST_FILES = 5_000
LOCKS = ("lock",)  # torch's: whoever held it is gone, and the next one would wait for it


def pack(folder: str, fd: int) -> None:
    """Writes an archive to `fd`, and nothing where there is too much to carry. Closes `fd`."""
    with os.fdopen(fd, "wb") as file:
        try:
            with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
                _add(Path(folder, KEPT), tar)
        except (OSError, ValueError, tarfile.TarError):
            file.seek(0)
            file.truncate()


def _add(root: Path, tar: tarfile.TarFile) -> None:
    """Regular files alone, the oldest times first to the second: no target is then newer than it was."""
    left, files = MOST_BYTES, 0
    for where, _, names in os.walk(root):
        for name in sorted(set(names).difference(LOCKS)):
            path = Path(where, name)
            found = path.lstat()
            if not stat.S_ISREG(found.st_mode):
                continue
            left, files = left - found.st_size, files + 1
            if left < 0 or files > MOST_FILES:
                raise ValueError("too much to carry")
            entry = tarfile.TarInfo(str(path.relative_to(root)))
            entry.size, entry.mtime, entry.mode = found.st_size, int(found.st_mtime), found.st_mode & 0o700
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as content:
                tar.addfile(entry, content)


def unpack(archive: str, folder: str) -> None:
    """Lays what was packed into a worker's folder. Raises OSError and tarfile.TarError."""
    if Path(archive).stat().st_size:
        with tarfile.open(archive) as tar:
            tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            tar.extractall(Path(folder, KEPT))
