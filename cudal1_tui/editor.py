"""A copy of a candidate in the person's editor; the judged source itself is never changed."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from cudal1_tui.decisions import Note


def edit_copy(name: str, source: str, folder: Path | None, reference: str) -> Note:
    """Waits for the editor; says where the copy lies if it was changed, and how to have it judged."""
    try:
        home = folder if folder is not None else Path(tempfile.mkdtemp(prefix="cudal1-edit-"))
        path = home / f"{Path(name).name}_edited.py"
        if not path.exists():  # what was changed before is opened again
            path.write_text(source, encoding="utf-8", errors="replace")
        command = [*shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"), str(path)]
        before = path.read_bytes()
        status = subprocess.run(command, check=False).returncode
        changed = path.read_bytes() != before
    except (OSError, ValueError) as error:
        return Note(f"The editor cannot be used: {error}. Set EDITOR to another.", "error")
    if status != 0:
        return Note(f"The editor ended with status {status}; the copy is {path}", "warning")
    if changed:
        return Note(f"Saved. Judge it: cudal1-tui verify {shlex.quote(reference)} {shlex.quote(str(path))}")
    return Note(f"Unchanged: {path}")
