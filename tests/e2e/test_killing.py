"""kill -9 at random moments: nothing that was shown is lost. `python -m tests.e2e.killing` does it 50 times."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from cudal1_core.archive import Archive
from cudal1_core.history import page_of_runs
from cudal1_core.paths import archive_path

from tests.e2e.killing import _PROGRAM, ROOT, kill_once


def test_nothing_that_was_shown_is_lost(tmp_path: Path) -> None:
    for seed in range(8):
        kill_once(tmp_path, seed)
    archive = Archive(archive_path(tmp_path))
    assert len(page_of_runs(archive)) == 8
    archive.close()


def test_two_processes_fill_one_archive_and_lose_nothing(tmp_path: Path) -> None:
    program = _PROGRAM.replace("1000", "20")
    paths = [str(ROOT), *(str(ROOT / name) for name in ("core", "themes"))]
    environment = {"PYTHONPATH": ":".join(paths), "PATH": ""}
    both = [
        subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, env=environment, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    shown = [one.communicate(timeout=120)[0] for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert not any(b"trouble_met" in told for told in shown)
    archive = Archive(archive_path(tmp_path))
    assert (
        sorted((run.written, run.accepted, len(run.decisions)) for run in page_of_runs(archive)) == [(60, 60, 60)] * 2
    )
    archive.close()
