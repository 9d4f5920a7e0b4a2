"""Receipts: what they hold, that they outlive their files, and when two verdicts agree."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cudal1_core.errors import UsageError
from cudal1_core.referee import conditions
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.referee.receipt import Receipt, differences, lay_out_copy, read_receipt
from cudal1_core.referee.verify import verify
from cudal1_core.verdict import Verdict

from tests.referee.conftest import INPUTS, RELU

OPTIONS = JudgeOptions(device="cpu", timing_budget_s=0.3)
THEN = Verdict("accepted", speedup=1.50, speedup_interval=(1.48, 1.52), device={"name": "a"})


def packaged(folder: Path) -> tuple[Path, Path]:
    """A reference inside a package, which imports a module beside it and one above, and a candidate."""
    package = folder / "shop" / "models"
    package.mkdir(parents=True)
    (folder / "shop" / "__init__.py").write_text("")
    (folder / "shop" / "steps.py").write_text("def step(x):\n    return x.relu()\n")
    (package / "__init__.py").write_text("")
    reference = package / "net.py"
    body = RELU.format(name="Model").replace("torch.relu(x)", "step(x)")
    reference.write_text("from ..steps import step\n" + body + INPUTS)
    candidate = folder / "candidate.py"
    candidate.write_text(RELU.format(name="ModelNew"))
    return reference, candidate


def test_a_receipt_holds_every_sample_and_judges_the_pair_when_its_files_are_gone(tmp_path: Path) -> None:
    files = packaged(tmp_path)
    first = asyncio.run(verify(*files, OPTIONS))
    assert first.verdict.accepted, first.verdict.reason
    Receipt.of(files, OPTIONS, first.verdict, first.helpers, first.measured).write(tmp_path / "r.json")
    read = read_receipt(tmp_path / "r.json")
    assert read.verdict == first.verdict
    assert read.options == OPTIONS
    samples = read.measured["samples"]["called"]
    assert len(samples) >= 5
    assert all(reference > 0 and candidate > 0 for reference, candidate in samples)
    assert set(read.measured["seeds"]) == {"build", "inputs"}
    assert read.measured["before"]["cores"] >= 1
    assert {helper.path for helper in read.helpers} >= {"shop/steps.py", "shop/__init__.py"}
    assert read.reference.lies_at(files[0])
    files[0].unlink()
    (tmp_path / "shop" / "steps.py").unlink()
    assert not read.reference.lies_at(files[0])
    copy = lay_out_copy(read, tmp_path / "copy")
    again = asyncio.run(verify(*copy, read.options)).verdict
    assert (again.verdict, again.category, again.reason) == ("accepted", None, None)


def test_a_receipt_of_a_rejection_has_no_samples(tmp_path: Path, relu_reference: Path) -> None:
    candidate = tmp_path / "wrong.py"
    candidate.write_text(RELU.format(name="ModelNew").replace("torch.relu(x)", "x * 2"))
    judged = asyncio.run(verify(relu_reference, candidate, OPTIONS))
    assert judged.verdict.category == "wrong_result"
    Receipt.of((relu_reference, candidate), OPTIONS, judged.verdict, judged.helpers, judged.measured).write(
        tmp_path / "r.json"
    )
    assert read_receipt(tmp_path / "r.json").measured == {}


@pytest.mark.parametrize(
    ("now", "agrees"),
    [
        (replace(THEN, speedup=1.54, speedup_interval=(1.51, 1.56)), True),  # intervals overlap
        (replace(THEN, speedup=1.527, speedup_interval=(1.525, 1.53)), True),  # within 2 %
        (replace(THEN, speedup=1.60, speedup_interval=(1.58, 1.62)), False),
        (replace(THEN, speedup=3.0, speedup_interval=(2.9, 3.1), device={"name": "b"}), True),  # another device
        (Verdict("rejected", category="wrong_result"), False),
        (replace(THEN, speedup=None, speedup_interval=None), False),
    ],
)
def test_when_two_verdicts_agree(now: Verdict, agrees: bool) -> None:
    assert (differences(THEN, now) == []) is agrees


def test_two_rejections_agree_only_in_their_category() -> None:
    wrong = Verdict("rejected", category="wrong_result", reason="one")
    assert differences(wrong, replace(wrong, reason="another")) == []
    assert differences(wrong, replace(wrong, category="crashed"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "is no receipt"),
        ("[]", "is no receipt"),
        ('{"verdict": {}}', "older version"),
        ('{"receipt": 99}', "has version 99"),
        ('{"receipt": 1}', "is damaged"),
    ],
)
def test_what_is_no_receipt_is_told(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_receipt(path)


def test_a_receipt_cannot_write_outside_its_folder(tmp_path: Path, relu_reference: Path) -> None:
    candidate = tmp_path / "c.py"
    candidate.write_text("")
    Receipt.of((relu_reference, candidate), OPTIONS, THEN, {}, None).write(tmp_path / "r.json")
    data = json.loads((tmp_path / "r.json").read_text())
    data["helpers"] = [{"path": "../../out.py", "sha256": "", "text": "x = 1"}]
    (tmp_path / "r.json").write_text(json.dumps(data))
    with pytest.raises(UsageError, match="outside its folder"):
        lay_out_copy(read_receipt(tmp_path / "r.json"), tmp_path / "a" / "b")
    assert not (tmp_path / "out.py").exists()


@pytest.mark.parametrize(("bits", "slowed"), [(0x0, False), (0x1, False), (0x2, False), (0x4, True), (0x41, True)])
def test_a_clock_slowed_for_power_or_heat_is_told_from_an_idle_one(bits: int, slowed: bool) -> None:
    quiet: dict[str, Any] = {"load": 0.1, "gpu": {"unknown": "Not Supported"}}
    assert conditions.throttled(quiet, {"gpu": {"throttle_reasons": bits}}) == slowed
    assert not conditions.throttled(quiet, {"cpu_mhz": 2600})
