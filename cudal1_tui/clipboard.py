"""Copying by every route there is, and a sentence that says which were used.

A terminal does not answer whether it took OSC 52, so where that is the only route the text is also
written to a file.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

OSC_52_LIMIT = 74_994  # bytes; longer sequences are dropped by common terminals
_TMUX_S = 2.0


@dataclass(frozen=True, slots=True)
class Copied:
    """Where a copied text went."""

    tmux: bool
    terminal: bool  # sent as OSC 52
    file: Path | None

    def __str__(self) -> str:
        routes = []
        if self.tmux:
            routes.append("to the tmux buffer (prefix ] pastes)")
        if self.terminal:
            routes.append("to the terminal's clipboard (OSC 52)")
        if self.file is not None:
            routes.append(f"in {self.file}")
        return "Copied " + " and ".join(routes) + "." if routes else "Nothing could be copied."


def copy(text: str, osc_52: Callable[[str], None], folder: Path | None = None) -> Copied:
    """Copies `text`; `osc_52` sends it to the terminal, `folder` (else a temporary one) takes the file."""
    tmux = _to_tmux(text)
    terminal = len(text.encode("utf-8", "replace")) <= OSC_52_LIMIT
    if terminal:
        osc_52(text)
    return Copied(tmux, terminal, None if tmux else _to_file(text, folder))


def _to_tmux(text: str) -> bool:
    tmux = shutil.which("tmux") if os.environ.get("TMUX") else None
    if tmux is None:
        return False
    import subprocess

    for flags in (["-w"], []):  # -w, also to the outer terminal, came with tmux 3.2
        try:
            done = subprocess.run(
                [tmux, "load-buffer", *flags, "-"],
                input=text.encode("utf-8", "replace"),
                capture_output=True,
                timeout=_TMUX_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        if done.returncode == 0:
            return True
    return False


def _to_file(text: str, folder: Path | None) -> Path | None:
    content = text.encode("utf-8", "replace")
    if folder is not None:
        path = folder / "copied.py"
        try:
            path.write_bytes(content)
        except OSError:
            pass
        else:
            return path
    try:
        descriptor, name = tempfile.mkstemp(prefix="cudal1-copied-", suffix=".py")
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
    except OSError:
        return None
    return Path(name)
