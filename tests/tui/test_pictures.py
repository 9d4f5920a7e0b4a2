"""The pictures of README and docs show the workbench as it is; `make pictures` makes them again."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from cudal1_tui.screens.workbench import WorkbenchScreen
from tests.tui.locked import same_drawing

IMAGES = Path(__file__).parents[2] / "docs" / "images"
MAKE = runpy.run_path(str(IMAGES / "make.py"))


@same_drawing
@pytest.mark.parametrize("name", MAKE["PICTURES"])
def test_a_picture_is_true(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(WorkbenchScreen, "_watch_machine", lambda self: None)  # of the machine the tests run on
    again = MAKE["draw"](name) == (IMAGES / f"{name}.svg").read_text(encoding="utf-8")
    assert again, f"docs/images/{name}.svg shows an earlier state: make pictures"


def test_every_picture_that_is_made_is_shown() -> None:
    pages = [IMAGES.parents[1] / "README.md", *IMAGES.parent.glob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert all(f"images/{path.name}" in text for path in IMAGES.glob("*.svg"))
    assert {path.stem for path in IMAGES.glob("*.svg")} == set(MAKE["PICTURES"])
