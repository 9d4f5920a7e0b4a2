"""Settings are merged from two files, and every mistake in one is named without losing the rest."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from cudal1_core.config import Settings, load, settings_table

DOCS = Path(__file__).parents[2] / "docs" / "workbench.md"


def settings_of(tmp_path: Path, *texts: str) -> tuple[Settings, list[str]]:
    paths = [tmp_path / f"{number}.toml" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    settings, problems = load(paths, ("accept", "reject"))
    return settings, [problem.reason for problem in problems]


def test_without_files_the_defaults_hold(tmp_path: Path) -> None:
    assert load([tmp_path / "none.toml"]) == (Settings(), [])


def test_the_projects_file_wins_and_keys_are_joined(tmp_path: Path) -> None:
    settings, problems = settings_of(
        tmp_path,
        'theme = "nord"\nrounds = 5\nkeys = {accept = "A", reject = "R"}',
        'rounds = 7\nkeys = {reject = "X"}',
    )
    assert problems == []
    assert (settings.theme, settings.rounds, settings.keys) == ("nord", 7, {"accept": "A", "reject": "X"})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("theem = 'nord'", "theem: no such setting; did you mean theme?"),
        ("mouse = 1", "mouse: 1 is not true or false"),
        ("rounds = true", "rounds: True is not a whole number"),
        ("frames = 61", "frames: 61 is not between 0 and 60"),
        ("keys = {acept = 'A'}", "acept: no such action; did you mean accept?"),
        ("keys = {accept = 3}", 'keys.accept: must be a text such as "ctrl+t"'),
    ],
)
def test_a_mistake_is_named_and_the_rest_still_counts(tmp_path: Path, text: str, reason: str) -> None:
    settings, problems = settings_of(tmp_path, f"group = 9\n{text}")
    assert problems == [reason]
    assert settings == Settings(group=9)


@pytest.mark.parametrize("text", ["theme = ", "\0"])
def test_a_file_that_is_no_toml_is_told(tmp_path: Path, text: str) -> None:
    settings, problems = settings_of(tmp_path, text)
    assert settings == Settings()
    assert problems[0].startswith("cannot be read")


def test_every_setting_has_its_sentence_and_the_docs_hold_them() -> None:
    assert all(entry.metadata["doc"].endswith(".") for entry in fields(Settings))
    assert f"config.py -->\n{settings_table()}\n<!-- end of settings -->" in DOCS.read_text(encoding="utf-8")
