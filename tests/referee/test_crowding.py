"""Other programs on the processor are told from threads that wait for each other."""

from __future__ import annotations

import asyncio
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from cudal1_core.referee import crowding, sandbox
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.verdict import Verdict

if TYPE_CHECKING:
    from cudal1_core.referee.runner import Runner

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


class Counted:
    """A runner whose supervisor has counted this."""

    counted = 0.0, 0.0

    def waited(self) -> float:
        return self.counted[0]

    def computed(self) -> float:
        return self.counted[1]


@pytest.mark.parametrize(
    ("waited", "busy", "computed", "crowded"),
    [
        (0.5, 9.0, 1.0, True),
        (0.5, 1.0, 1.0, False),  # its own threads wait for each other
        (0.05, 9.0, 1.0, False),  # others have a core of their own
        (0.5, math.nan, 1.0, True),  # nobody knows of others
    ],
)
def test_threads_must_wait_and_others_be_at_work(
    waited: float, busy: float, computed: float, crowded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = Counted()
    monkeypatch.setattr(crowding, "_busy_seconds", lambda: busy * 0.0)
    watch = crowding.Crowding(cast("Runner", runner), [cast("Runner", runner)])
    monkeypatch.setattr(crowding, "_busy_seconds", lambda: busy)
    runner.counted = waited, computed
    assert watch.found(1.0) == crowded


@pytest.mark.parametrize(("name", "value"), [("OMP_WAIT_POLICY", "active"), ("GOMP_SPINCOUNT", "7")])
def test_a_person_may_say_how_openmp_waits(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for known in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(known, raising=False)
    assert sandbox.passed_on()["GOMP_SPINCOUNT"] == sandbox.SPINS
    monkeypatch.setenv(name, value)
    assert {key: sandbox.passed_on()[key] for key in sandbox.passed_on() if key[:4] in ("OMP_", "GOMP")} == {
        name: value
    }
