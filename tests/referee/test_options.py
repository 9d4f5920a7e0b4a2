"""What a person may set about judging changes the verdict as it says, and only then."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.verdict import Verdict

OPTIONS = JudgeOptions(device="cpu", timing_budget_s=0.3)
TWO_MODULES = """
import torch
class Halves(torch.nn.Module):
    def forward(self, x):
        return x / 2
class Drops(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.drop = torch.nn.BatchNorm1d(64), torch.nn.Dropout(0.5)
    def forward(self, x):
        return self.drop(self.norm(x))
def get_inputs():
    return [torch.randn(32, 64)]
"""
WITHOUT_DROPOUT = """
import torch
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(64)
    def forward(self, x):
        return self.norm(x)
"""
LINEAR = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(256, 256)
    def forward(self, x):
        return self.fc(x)
def get_inputs():
    return [torch.randn(64, 256)]
"""
HALVED = LINEAR.replace("Model(", "ModelNew(").replace(
    "self.fc(x)",
    "torch.nn.functional.linear(x.bfloat16(), self.fc.weight.bfloat16(), self.fc.bias.bfloat16()).float()",
)
ONE_BUFFER = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        if not hasattr(self, "out"):
            self.out = torch.empty_like(x)
        return torch.div(x, 2, out=self.out)
"""
SLEEPY = "import time\n" + ONE_BUFFER.replace(
    "return torch.div(x, 2, out=self.out)", "time.sleep({call}); return x / 2"
)
READS = """
import pathlib
scale = float(pathlib.Path({path!r}).read_text())
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x * scale
"""


def judged(folder: Path, source: str, reference: str = TWO_MODULES, **options: object) -> Verdict:
    path = folder / "reference.py"
    path.write_text(reference)

    async def run() -> Verdict:
        async with Referee(replace(OPTIONS, **options)) as referee:  # type: ignore[arg-type]
            await referee.open(path)
            return await referee.judge("c1", source.encode(), lambda event: None)

    return asyncio.run(run())


def test_mode_says_which_of_its_two_lives_a_module_is_judged_in(tmp_path: Path) -> None:
    as_built = judged(tmp_path, WITHOUT_DROPOUT, model="Drops")
    assert as_built.category == "wrong_result"
    evaluated = judged(tmp_path, WITHOUT_DROPOUT, model="Drops", mode="eval")
    assert evaluated.accepted, evaluated.reason


def test_model_chooses_among_several_in_a_file(tmp_path: Path) -> None:
    assert judged(tmp_path, ONE_BUFFER.replace("out=self.out", ""), model="Halves").accepted
    assert judged(tmp_path, ONE_BUFFER.replace("out=self.out", ""), model="Drops").category == "wrong_result"


def test_precision_is_accepted_only_where_it_is_allowed_and_always_labelled(tmp_path: Path) -> None:
    assert judged(tmp_path, HALVED, LINEAR).category == "reduced_precision"
    assert judged(tmp_path, HALVED, LINEAR, allow_precision="tf32").category == "reduced_precision"
    allowed = judged(tmp_path, HALVED, LINEAR, allow_precision="bf16")
    assert allowed.accepted, allowed.reason
    assert "reduced_precision" in allowed.labels
    assert allowed.win == "reduced_precision"


def test_a_buffer_that_is_returned_again_is_accepted_only_where_that_is_allowed(tmp_path: Path) -> None:
    assert judged(tmp_path, ONE_BUFFER, model="Halves").category == "reuses_output"
    allowed = judged(tmp_path, ONE_BUFFER, model="Halves", allow_output_reuse=True)
    assert allowed.accepted, allowed.reason
    assert "output_reuse" in allowed.labels


def test_what_a_candidate_may_read_is_what_is_exposed(tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere" / "scale.txt"
    secret.parent.mkdir()
    secret.write_text("0.5")
    source = READS.format(path=str(secret))
    hidden = judged(tmp_path, source, model="Halves")
    assert hidden.category == "build_failed"
    assert judged(tmp_path, source, model="Halves", expose=(secret.parent,)).accepted


def test_the_time_limits_are_those_that_were_given(tmp_path: Path) -> None:
    slow_call = SLEEPY.format(call=4)
    assert judged(tmp_path, slow_call, model="Halves", timeout_s=1.0, build_timeout_s=1.0).category == "timed_out"
    slow_build = "import time\ntime.sleep(3)\n" + ONE_BUFFER.replace("out=self.out", "")
    assert judged(tmp_path, slow_build, model="Halves", build_timeout_s=1.0).category == "timed_out"
    assert judged(tmp_path, slow_build, model="Halves", build_timeout_s=60.0).accepted
