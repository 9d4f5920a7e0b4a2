"""Reads themes from TOML. A bad file is reported with its key, never fatal.

Every key of a theme file is listed in COLOURS and VARIABLES; all colours are written #rrggbb, so that
nothing here needs a colour library or a screen.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COLOURS = (
    "primary", "secondary", "accent", "foreground", "background", "surface", "panel",
    "success", "warning", "error",
)  # fmt: skip
VARIABLES = (
    "faster", "slower", "best", "muted", "ok", "failed",
    "code-keyword", "code-name", "code-string", "code-number", "code-comment", "code-operator",
    "code-decorator", "code-builtin", "diff-added", "diff-removed", "diff-place",
)  # fmt: skip

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True, slots=True)
class ThemeFile:
    """One theme as written."""

    name: str
    dark: bool
    colours: dict[str, str]  # the keys of COLOURS
    variables: dict[str, str] = field(default_factory=dict)  # the keys of VARIABLES


@dataclass(frozen=True, slots=True)
class ThemeProblem:
    """Why a theme file was left out."""

    path: Path
    reason: str


def bundled_folder() -> Path:
    """Where the themes that come with the product lie."""
    return Path(__file__).parent


def load_folder(folder: Path) -> tuple[list[ThemeFile], list[ThemeProblem]]:
    """Every `*.toml` of a folder, by file name; a folder that is missing holds none."""
    themes: list[ThemeFile] = []
    problems: list[ThemeProblem] = []
    for path in sorted(folder.glob("*.toml")):
        try:
            themes.append(load_theme(path))
        except (OSError, ValueError) as error:
            problems.append(ThemeProblem(path, str(error)))
    return themes, problems


def load_theme(path: Path) -> ThemeFile:
    """Raises ValueError that names the key where the file is not a theme, OSError where it cannot be read."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    name, dark = data.pop("name", path.stem), data.pop("dark", True)
    if not isinstance(name, str) or not name:
        raise ValueError("name: must be a word")
    if not isinstance(dark, bool):
        raise ValueError("dark: must be true or false")
    colours = _section(data.pop("colours", None), "colours", COLOURS)
    variables = _section(data.pop("variables", {}), "variables", VARIABLES)
    missing = [key for key in COLOURS if key not in colours]
    if missing:
        raise ValueError(f"colours.{missing[0]}: is missing")
    if data:
        raise ValueError(f"{next(iter(data))}: not a key of a theme")
    return ThemeFile(name, dark, colours, variables)


def _section(values: Any, section: str, known: tuple[str, ...]) -> dict[str, str]:
    if not isinstance(values, dict):
        raise ValueError(f"{section}: must be a table of colours")
    for key, value in values.items():
        if key not in known:
            raise ValueError(f"{section}.{key}: not a key of a theme")
        if not isinstance(value, str) or not _COLOUR.fullmatch(value):
            raise ValueError(f"{section}.{key}: {value!r} is not a colour like #1e88e5")
    return dict(values)
