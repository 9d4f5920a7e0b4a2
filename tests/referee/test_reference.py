"""A file that is no usable reference gets its own clear refusal, with the line where there is one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from cudal1_core.errors import UnjudgeableError
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.reference import Task

from tests.referee.conftest import INPUTS, RELU

MODEL = RELU.format(name="Model")


def read(path: Path, model: str | None = None) -> Task:
    async def run() -> Task:
        async with Referee(JudgeOptions(device="cpu", model=model, timeout_s=5.0)) as referee:
            return await referee.open(path)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("source", "category", "words"),
    [
        ("import torch\ndef broken(:\n", "bad_reference", ["reference.py:2", "SyntaxError"]),
        ("import not_installed_anywhere\n", "bad_reference", ["reference.py:1", "not_installed_anywhere"]),
        ("x = 1\n", "bad_reference", ["no class Model", "class Model(nn.Module)"]),
        (MODEL, "bad_reference", ["no get_inputs()", "def get_inputs():"]),
        (MODEL + INPUTS + "raise ValueError('at import')\n", "reference_failed", ["reference.py", "at import"]),
        (
            MODEL + "def get_inputs():\n    raise OSError('no data')\n",
            "reference_failed",
            ["reference.py:7", "no data"],
        ),
        (MODEL + "def get_inputs():\n    return [1, 2, 3]\n", "reference_failed", ["forward fails"]),
        (
            MODEL.replace("torch.relu(x)", "str(x)") + INPUTS,
            "unsupported",
            ["forward returns a str", "Return tensors"],
        ),
        (
            MODEL.replace("torch.relu(x)", "x * (__import__('time').time_ns() % 9973)") + INPUTS,
            "nondeterministic",
            ["another answer again"],
        ),
        (MODEL.replace("torch.relu(x)", "__import__('os')._exit(7)") + INPUTS, "reference_failed", ["status 7"]),
        (
            RELU.format(name="First") + RELU.format(name="Second") + INPUTS,
            "bad_reference",
            ["several modules", "First (line 3)", "--model"],
        ),
    ],
)
def test_refusals_say_what_is_wrong(tmp_path: Path, source: str, category: str, words: list[str]) -> None:
    path = tmp_path / "reference.py"
    path.write_text(source)
    with pytest.raises(UnjudgeableError) as caught:
        read(path)
    assert caught.value.category == category
    for word in words:
        assert word in str(caught.value)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(UnjudgeableError, match="no such file"):
        read(tmp_path / "nothing.py")
    with pytest.raises(UnjudgeableError, match="is a folder"):
        read(tmp_path)


def test_one_of_several_modules_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "reference.py"
    path.write_text(RELU.format(name="First") + RELU.format(name="Second") + INPUTS)
    assert read(path, "Second").model == "Second"


def test_the_users_own_modules_are_found(tmp_path: Path) -> None:
    package = tmp_path / "net"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text("SCALE = 3.0\n")
    (package / "model.py").write_text(
        "from .parts import SCALE\n" + MODEL.replace("torch.relu(x)", "x * SCALE") + INPUTS
    )
    (tmp_path / "plain_helper.py").write_text("SCALE = 2.0\n")
    alone = tmp_path / "alone.py"
    alone.write_text("from .plain_helper import SCALE\n" + MODEL.replace("torch.relu(x)", "x * SCALE") + INPUTS)
    assert read(package / "model.py").inputs == ("float32[32, 64]",)
    assert read(alone).outputs == ("float32[32, 64]",)
    assert not list(tmp_path.rglob("__pycache__"))


def test_a_main_block_does_not_run(tmp_path: Path) -> None:
    path = tmp_path / "reference.py"
    path.write_text(MODEL + INPUTS + "if __name__ == '__main__':\n    raise SystemExit('ran as a program')\n")
    assert read(path).model == "Model"


STRICT = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        if {refuses}:
            raise ValueError("no such input")
        return torch.log(x)
def get_inputs():
    x = torch.rand(64, 32).clamp(0.1, 0.99999)
    x[0, 0] = 0.99999
    return [{drawn}]
"""


@pytest.mark.parametrize(
    ("refuses", "drawn"),
    [
        ("bool((x >= 1).any())", "x"),
        ("bool(((x.double().sum(1) - 1).abs() > 1e-6).any())", "x / x.sum(1, keepdim=True)"),
    ],
    ids=["range", "rows"],
)
def test_a_reference_may_refuse_what_lies_outside_its_own_domain(tmp_path: Path, refuses: str, drawn: str) -> None:
    path = tmp_path / "reference.py"
    path.write_text(STRICT.format(refuses=refuses, drawn=drawn))
    assert read(path).outputs == ("float32[64, 32]",)
