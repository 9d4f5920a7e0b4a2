"""Whether what draws here is what the stored pictures were made with."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

LOCK = Path(__file__).parents[2] / "requirements.lock"
DRAWING = ("pygments", "rich", "textual")
LOCKED = dict(line.lower().split("==") for line in LOCK.read_text().splitlines() if not line.startswith("#"))
OTHERS = [f"{name} {version(name)}" for name in DRAWING if version(name) != LOCKED[name]]
same_drawing = pytest.mark.skipif(bool(OTHERS), reason=f"pictures are made with requirements.lock; here is {OTHERS}")
