"""A right candidate passes and a wrong one does not, whatever form inputs and outputs have."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from cudal1_core.errors import UnjudgeableError
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions

from tests.referee.forms import GROUPS, OBJECT, REFUSED, Form

OPTIONS = JudgeOptions(device="cpu", timing_budget_s=0.05)


async def mistakes(form: Form, referee: Referee, folder: Path) -> list[str]:
    path = folder / "reference.py"
    path.write_text(form.reference)
    task = await referee.open(path)
    found = [f"{form.name}: label {label} is missing" for label in form.labels if label not in task.labels]
    if "constant_output" in task.labels and "constant_output" not in form.labels:
        found.append(f"{form.name}: label constant_output is wrong")
    for right in (True, False):
        verdict = await referee.judge("c", form.candidate(right), lambda event: None)
        if verdict.accepted is not right:
            found.append(f"{form.name}, {'right' if right else 'wrong'}: {verdict.category} {verdict.reason}")
        if not right and verdict.category not in ("wrong_result", "wrong_form", "changes_inputs", "reduced_precision"):
            found.append(f"{form.name}, wrong: {verdict.category}")
    return found


@pytest.mark.parametrize("group", GROUPS)
def test_right_passes_and_wrong_does_not(group: str, tmp_path: Path) -> None:
    async def judge() -> list[str]:
        async with Referee(OPTIONS) as referee:
            return [bad for form in GROUPS[group] for bad in await mistakes(form, referee, tmp_path)]

    assert asyncio.run(judge()) == []


def test_what_cannot_be_judged_says_why(tmp_path: Path) -> None:
    async def refusals() -> dict[str, str]:
        found = {}
        async with Referee(OPTIONS) as referee:
            for name, (forward, inputs, _) in REFUSED.items():
                path = tmp_path / "reference.py"
                path.write_text(Form(name, forward, inputs, "", before=OBJECT).reference)
                with pytest.raises(UnjudgeableError) as refused:
                    await referee.open(path)
                found[name] = f"{refused.value.category}: {refused.value}"
        return found

    found = asyncio.run(refusals())
    assert all(text.startswith("unsupported") and REFUSED[name][2] in text for name, text in found.items()), found
