"""A copy of a candidate in the person's editor; the judged source itself is never changed."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cudal1_tui.decisions import Note

if TYPE_CHECKING:
    import threading

LOOK_S = 0.05  # between looks at the editor


def edit_copy(name: str, source: str, folder: Path | None, reference: str, leaving: threading.Event) -> Note:
    """Waits for the editor, or until `leaving` is set; says where the copy lies and how to have it judged."""
    try:
        home = folder if folder is not None else Path(tempfile.mkdtemp(prefix="cudal1-edit-"))
        path = home / f"{Path(name).name}_edited.py"
        if not path.exists():  # what was changed before is opened again
            path.write_text(source, encoding="utf-8", errors="replace")
        command = [*shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"), str(path)]
        before = path.read_bytes()
        editor = subprocess.Popen(command)
        while (status := editor.poll()) is None:
            if leaving.wait(LOOK_S):
                editor.terminate()  # on which editors keep what was typed
                return Note(f"The editor was ended; the copy is {path}", "warning")
        changed = path.read_bytes() != before
    except (OSError, ValueError) as error:
        return Note(f"The editor cannot be used: {error}. Set EDITOR to another.", "error")
    if status != 0:
        return Note(f"The editor ended with status {status}; the copy is {path}", "warning")
    if changed:
        return Note(f"Saved. Judge it: cudal1-tui verify {shlex.quote(reference)} {shlex.quote(str(path))}")
    return Note(f"Unchanged: {path}")
