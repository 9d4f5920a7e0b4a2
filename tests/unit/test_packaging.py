"""A clean clone installs the versions that were tested."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def pinned() -> dict[str, str]:
    lines = [line for line in LOCK.splitlines() if line and not line.startswith("#")]
    return {name_of(line): line.partition("==")[2] for line in lines}


def test_everything_that_make_installs_is_pinned() -> None:
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
    assert [name_of(one) for one in wanted if not pinned().get(name_of(one))] == []


def test_the_lock_holds_versions_and_no_place_to_fetch_them_from() -> None:
    assert [version for version in pinned().values() if not re.fullmatch(r"[\w.]+", version)] == []
    assert "--" not in LOCK


def test_textual_is_pinned_alike_in_both_places() -> None:
    assert f"textual=={pinned()['textual']}" in PROJECT["dependencies"]
