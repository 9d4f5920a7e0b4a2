"""Every judged pair of tests/cases gets the right answer on the CPU, through one warm referee a reference."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.referee import warm

GROUPS = warm.groups("cpu")
SPECIAL = [case for case in warm.cases("cpu") if case.special]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("group", GROUPS, ids=[group[0].name for group in GROUPS])
def test_cases_get_the_right_verdict(group: list[warm.Case]) -> None:
    assert warm.failures(group, "cpu") == {}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("case", SPECIAL, ids=[case.name for case in SPECIAL])
def test_special_cases_through_the_command_line(case: warm.Case, tmp_path: Path) -> None:
    command = f"{sys.executable} -m cudal1_tui"
    run = subprocess.run(
        [sys.executable, warm.CASES / "run_cases.py", warm.CASES / case.name, "--device", "cpu", "--command", command],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
