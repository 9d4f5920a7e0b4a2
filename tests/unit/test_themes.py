"""Themes load, bad ones are named and left out, and their text can be read."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from cudal1_themes import ThemeFile, bundled_folder, load_folder, load_theme
from cudal1_themes.loader import VARIABLES

if TYPE_CHECKING:
    from pathlib import Path

THEMES, PROBLEMS = load_folder(bundled_folder())
GOOD = (bundled_folder() / "dark.toml").read_text(encoding="utf-8")


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2.1)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_four_themes_come_with_the_product() -> None:
    assert PROBLEMS == []
    assert [theme.name for theme in THEMES] == [
        "cudal1-contrast",
        "cudal1-dark",
        "cudal1-ember",
        "cudal1-light",
    ]
    assert all(set(theme.variables) == set(VARIABLES) for theme in THEMES)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_text_stands_out_from_every_ground(theme: ThemeFile) -> None:
    inks = {
        **theme.variables,
        **{key: theme.colours[key] for key in ("foreground", "primary", "warning", "error")},
    }
    grounds = ("background", "surface", "panel")
    pale = {
        f"{ink} on {ground}": round(contrast(inks[ink], theme.colours[ground]), 2)
        for ink, ground in itertools.product(inks, grounds)
        if contrast(inks[ink], theme.colours[ground]) < 4.5
    }
    assert pale == {}


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_faster_is_blue_and_slower_is_orange(theme: ThemeFile) -> None:
    for key, order in (("faster", "bgr"), ("slower", "rgb")):
        colour = theme.variables[key]
        channel = dict(zip("rgb", (int(colour[i : i + 2], 16) for i in (1, 3, 5)), strict=True))
        assert channel[order[0]] > channel[order[1]] > channel[order[2]], (key, colour)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace('primary = "#6ea8fe"', 'primary = "blue-ish"'), "colours.primary"),
        (GOOD.replace('primary = "#6ea8fe"', ""), "colours.primary: is missing"),
        (GOOD.replace("faster =", "fastest ="), "variables.fastest"),
        (GOOD.replace("dark = true", 'dark = "yes"'), "dark: must be"),
        ("colours = 3", "colours: must be"),
        ("[[[", "line 1"),
    ],
)
def test_a_bad_theme_is_named_and_the_others_load(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "bad.toml").write_text(text)
    (tmp_path / "good.toml").write_text(GOOD)
    themes, problems = load_folder(tmp_path)
    assert [theme.name for theme in themes] == ["cudal1-dark"]
    assert [problem.path.name for problem in problems] == ["bad.toml"]
    assert said in problems[0].reason
    with pytest.raises(ValueError, match=r".+"):
        load_theme(tmp_path / "bad.toml")


def test_a_missing_folder_holds_no_themes(tmp_path: Path) -> None:
    assert load_folder(tmp_path / "none") == ([], [])
