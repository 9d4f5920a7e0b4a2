"""Makes the pictures of README and docs from the recorded run beside this file: `make pictures`."""

from __future__ import annotations

import asyncio
from pathlib import Path

from cudal1_tui.screenshot import read_events, screenshot

HERE = Path(__file__).parent
PICTURES = {  # name: size, selected candidate, keys, theme
    "workbench": ((140, 44), "c04", (), "cudal1-dark"),
    "diff": ((180, 40), "c04", ("d", "shift+tab", "z"), "cudal1-dark"),
    "progress": ((120, 36), "c04", ("4",), "cudal1-ember"),
    "small": ((80, 24), "c04", ("3",), "cudal1-light"),
}


def draw(name: str) -> str:
    """A picture as SVG; the same text wherever it is made."""
    size, chosen, keys, theme = PICTURES[name]
    return asyncio.run(screenshot(read_events(HERE / "run.jsonl"), size, select=chosen, keys=keys, theme=theme))


if __name__ == "__main__":
    for name in PICTURES:
        (HERE / f"{name}.svg").write_text(draw(name), encoding="utf-8")
