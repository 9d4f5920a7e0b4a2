"""A disk that is full, made by a limit on the size of files: told once in clear words, and the run goes on."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.killing import _PROGRAM, ROOT

PROGRAM = _PROGRAM.replace("1000", "20").replace(
    "folder, archive = new_run_folder(), Archive(archive_path())",
    "folder = new_run_folder(); archive, trouble = open_archive(archive_path())",
)
PROGRAM = PROGRAM.replace("archive import Archive", "archive import open_archive").replace(
    "archive, folder)", "archive, folder, trouble=trouble)"
)


@pytest.mark.parametrize("limit", [8_000, 150_000, 400_000])
def test_a_full_disk_is_told_once_and_what_is_shown_goes_on(tmp_path: Path, limit: int) -> None:
    paths = [str(ROOT), *(str(ROOT / name) for name in ("core", "themes"))]
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={"PYTHONPATH": ":".join(paths), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert answer.returncode == 0, answer.stderr.decode()
    shown = [json.loads(line) for line in answer.stdout.splitlines()]
    troubles = [event for event in shown if event["event"] == "trouble_met"]
    assert len(troubles) == 1
    assert troubles[0]["title"] == "This run is not being stored"
    assert "Free some space" in troubles[0]["next_step"]
    assert sum(event["event"] == "verdict_reached" for event in shown) == 60
