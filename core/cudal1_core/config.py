"""Settings from `config.toml`: the person's file first, then `cudal1.toml` of the project, which wins.

A frozen dataclass and the standard library's reader are enough here: pydantic would be imported before the
first paint. Nothing that a file says runs a program, so a project's file can be trusted with all of it.
A mistake in a file is reported with its key and the nearest known one, never fatal.
"""

# ruff: noqa: RUF009 - fields are made by one helper, so that a setting and its sentence stand together

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

PROJECT_FILE = "cudal1.toml"


def _setting(default: Any, doc: str, *, low: int = 0, high: int = 0) -> Any:
    """A field with its sentence; `low` and `high` bound a number."""
    bounds = {"doc": doc, "low": low, "high": high}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=bounds)
    return field(default=default, metadata=bounds)


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its default; the command line wins over all of them."""

    theme: str = _setting("cudal1-dark", "Colours of the workbench; the palette lists what there is.")
    ascii: bool = _setting(False, "Draw with the 95 characters of ASCII alone.")
    mouse: bool = _setting(True, "Let the mouse select; without it the terminal selects text by itself.")
    frames: int = _setting(0, "Frames a second while text streams; 0 is 30, and 10 over SSH.", low=0, high=60)
    bell: bool = _setting(True, "Ring the bell when a run ends and waits for a decision, or meets trouble.")
    rounds: int = _setting(3, "Rounds of a run.", low=1, high=10_000)
    group: int = _setting(4, "Candidates a round.", low=1, high=1_000)
    keys: dict[str, str] = _setting({}, 'Other keys by the id of an action: `accept = "ctrl+t,a"`.')


@dataclass(frozen=True, slots=True)
class Problem:
    """What could not be used of a file, in a sentence."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def load(paths: Iterable[Path], actions: Iterable[str] = ()) -> tuple[Settings, list[Problem]]:
    """Later files win; files that are missing say nothing. `actions` are the ids that `keys` may name."""
    settings, problems, known_ids = Settings(), list[Problem](), tuple(actions)
    for path in paths:
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            problems.append(Problem(path, f"cannot be read: {error}"))
            continue
        settings, found = _merged(settings, data, known_ids)
        problems += [Problem(path, reason) for reason in found]
    return settings, problems


def _merged(settings: Settings, data: dict[str, Any], actions: tuple[str, ...]) -> tuple[Settings, list[str]]:
    known = {entry.name: entry for entry in fields(Settings)}
    values: dict[str, Any] = {}
    problems: list[str] = []
    for key, value in data.items():
        if key not in known:
            problems.append(_unknown(key, "setting", known))
        elif reason := _wrong(key, value, getattr(settings, key), known[key].metadata):
            problems.append(reason)
        elif key == "keys":
            problems += [_unknown(id, "action", actions) for id in value if actions and id not in actions]
            values["keys"] = {**settings.keys, **{id: to for id, to in value.items() if id in actions or not actions}}
        else:
            values[key] = value
    return replace(settings, **values), problems


def _wrong(key: str, value: Any, present: Any, bounds: Any) -> str:
    if type(value) is not type(present):
        names = {bool: "true or false", int: "a whole number", str: "a text", dict: "a table"}
        return f"{key}: {value!r} is not {names[type(present)]}"
    if isinstance(value, int) and bounds["high"] and not bounds["low"] <= value <= bounds["high"]:
        return f"{key}: {value} is not between {bounds['low']} and {bounds['high']}"
    if isinstance(value, dict) and (bad := [id for id, to in value.items() if not isinstance(to, str) or not to]):
        return f'keys.{bad[0]}: must be a text such as "ctrl+t"'
    return ""


def _unknown(word: str, what: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"{word}: no such {what}" + (f"; did you mean {near[0]}?" if near else "")


def settings_table() -> str:
    """Every setting with its default and sentence as Markdown, for the docs."""
    lines = ["| setting | default | what it does |", "| --- | --- | --- |"]
    defaults = Settings()
    for entry in fields(Settings):
        value = getattr(defaults, entry.name)
        shown = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value).replace("'", '"')
        lines.append(f"| `{entry.name}` | `{shown}` | {entry.metadata['doc']} |")
    return "\n".join(lines)
