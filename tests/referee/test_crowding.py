"""Other programs on the processor are told from threads that wait for each other."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cudal1_core.referee import sandbox
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.verdict import Verdict

REFERENCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b
def get_inputs():
    return [torch.randn(512, 512), torch.randn(512, 512)]
def get_init_inputs():
    return []
"""


def test_as_many_other_programs_as_there_are_cores_are_named(tmp_path: Path) -> None:
    path = tmp_path / "reference.py"
    path.write_text(REFERENCE)

    async def judge() -> Verdict:
        async with Referee(JudgeOptions(device="cpu", timing_budget_s=0.5)) as referee:
            await referee.open(path)
            hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
            try:
                return await referee.judge("c1", REFERENCE.replace("Model", "ModelNew"), lambda event: None)
            finally:
                for hog in hogs:
                    hog.kill()
                    hog.wait()

    verdict = asyncio.run(judge())
    assert verdict.accepted
    assert "foreign_load" in verdict.labels


@pytest.mark.parametrize(("name", "value"), [("OMP_WAIT_POLICY", "active"), ("GOMP_SPINCOUNT", "7")])
def test_a_person_may_say_how_openmp_waits(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for known in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(known, raising=False)
    assert sandbox.passed_on()["GOMP_SPINCOUNT"] == sandbox.SPINS
    monkeypatch.setenv(name, value)
    assert {key: sandbox.passed_on()[key] for key in sandbox.passed_on() if key[:4] in ("OMP_", "GOMP")} == {
        name: value
    }
