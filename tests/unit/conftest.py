"""A run with everything around it, in a folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cudal1_core.archive import Archive
from cudal1_core.paths import new_run_folder

from tests.unit.scripted import Bench, ScriptedPolicy, ScriptedReferee


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    archive = Archive(tmp_path / "archive.db")
    yield Bench(new_run_folder(tmp_path), archive, ScriptedReferee(), ScriptedPolicy([]))
    archive.close()
