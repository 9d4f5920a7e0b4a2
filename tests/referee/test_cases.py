"""Every judged pair of tests/cases gets the right answer on the CPU, through one warm referee a reference."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.verdict import Verdict

from tests.referee import warm

ORDINARY = sorted((case for case in warm.cases("cpu") if not case.special), key=lambda c: (c.shared_reference, c.hangs))
GROUPS = [(key, list(group)) for key, group in groupby(ORDINARY, key=lambda c: (c.shared_reference, c.hangs))]
SPECIAL = [case for case in warm.cases("cpu") if case.special]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("key", "group"), GROUPS, ids=[f"{key[0]}{'-hangs' if key[1] else ''}" for key, _ in GROUPS])
def test_cases_get_the_right_verdict(key: tuple[str, bool], group: list[warm.Case]) -> None:
    patient = JudgeOptions(device="cpu", timing_budget_s=2.0)
    quick = replace(patient, timeout_s=3.0, build_timeout_s=8.0)
    found: dict[str, list[str]] = {}

    def report(case: warm.Case, verdict: Verdict, seconds: float) -> None:
        if bad := warm.wrong(case, verdict):
            found[case.name] = bad

    with warm.working_copy() as folder:
        asyncio.run(warm.judge_all(group, folder, quick if key[1] else patient, report))
    assert found == {}


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
