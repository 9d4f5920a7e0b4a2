"""The contrastive prompt holds what the paper says it must."""

from __future__ import annotations

from pathlib import Path

import pytest
from cudal1_core.candidate import Candidate
from cudal1_core.errors import UsageError
from cudal1_core.extract import extract_code
from cudal1_core.policies.base import Judged
from cudal1_core.prompt import PromptOptions, build_prompt, build_repair, shorter
from cudal1_core.reference import Task
from cudal1_core.templates import Templates, read_templates
from cudal1_core.verdict import Check, Verdict

TASK = Task(
    path="/w/model.py",
    model="Model",
    source="class Model: ...",
    source_hash="h",
    device="cpu",
    device_name="a processor",
    dtype="float32",
    inputs=("float32[4, 8]",),
    outputs=("float32[4]",),
    parameters=0,
)


def judged(source: str, speedup: float) -> Judged:
    candidate = Candidate(id="c01", round=1, policy="replay", source=source, text="", title="fused")
    return Judged(candidate, Verdict("accepted", speedup=speedup))


def test_task_scores_sections_and_rules_are_there() -> None:
    text = build_prompt(TASK, [judged("class ModelNew: a", 1.2), judged("class ModelNew: b", 3.456)])
    for part in ("class Model: ...", "float32[4, 8]", "float32[4]", "a processor", "class ModelNew: b"):
        assert part in text
    assert text.index("1.20x") < text.index("3.46x")
    headings = ["## Performance Analysis", "## Algorithm Design", "## Code Implementation"]
    assert sorted(headings, key=text.index) == headings
    assert "# Requirements" in text
    assert "# Restrictions" in text
    assert "Compare the code above" in text


def test_without_exemplars_nothing_is_compared() -> None:
    text = build_prompt(TASK, [])
    assert "Compare the code above" not in text
    assert "Earlier code" not in text
    assert "No earlier code exists yet" in text


def test_source_with_a_fence_cannot_leave_its_own() -> None:
    source = '"""\n```python\nclass ModelNew: trap\n```\n"""\nclass ModelNew: ...\n'
    text = build_prompt(TASK, [judged(source, 2.0)])
    assert extract_code(text).strip() == source.strip()


def test_code_that_was_judged_wrong_carries_no_score() -> None:
    wrong = Verdict("rejected", category="wrong_result", reason="output 0\ndiffers", speedup=9.87)
    other_weights = Verdict("accepted", speedup=7.65, labels=("not_drop_in",))
    fed = [Judged(judged("class ModelNew: a", 1.0).candidate, verdict, fed=True) for verdict in (wrong, other_weights)]
    text = build_prompt(TASK, fed)
    assert "no score: wrong result (output 0 differs)" in text
    assert "9.87" not in text
    assert "7.65" not in text


def test_device_and_toolkits_are_named() -> None:
    text = build_prompt(TASK, [], PromptOptions(toolkits=("torch", "triton")))
    assert "The device: a processor (" in text
    assert "Only these may be used: plain PyTorch; Triton kernels." in text
    assert "Triton" not in build_prompt(TASK, [])  # does not work on this device


def test_exemplars_are_given_up_one_by_one_and_what_was_fed_stays_longest() -> None:
    slow, fast = judged("class ModelNew: a", 0.5), judged("class ModelNew: b", 3.0)
    fed = Judged(judged("class ModelNew: c", 0.1).candidate, slow.verdict, fed=True)
    assert shorter([fed, slow, fast]) == [(fed, slow, fast), (fed, fast), (fed,), ()]


def test_a_template_of_ones_own_takes_the_place_of_ours(tmp_path: Path) -> None:
    (tmp_path / "contrastive.md").write_text("For $$5: $reference then\n$exemplars end\n")
    own = PromptOptions(templates=read_templates(tmp_path))
    text = build_prompt(TASK, [judged("class ModelNew: $danger", 2.0)], own)
    assert text.startswith("For $5: inputs:")
    assert "class ModelNew: $danger" in text
    assert own.templates.repair.template == Templates().repair.template


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("$reference\n$exemplars\n$speed", "contrastive.md:3: .speed is not known"),
        ("$reference\n5$ and $exemplars", "contrastive.md:2: a lone"),
        ("$exemplars", "reference is missing"),
    ],
)
def test_a_bad_template_is_named_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "contrastive.md").write_text(text)
    with pytest.raises(UsageError, match=words):
        read_templates(tmp_path)


def test_a_folder_without_templates_is_no_silent_default(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no template"):
        read_templates(tmp_path)


def test_a_repair_says_what_failed_with_its_evidence() -> None:
    checks = (Check("values", False, "output 0 off by 3"), Check("shape", True, "all equal"))
    text = build_repair(Verdict("rejected", "wrong_result", "differs at [0, 1]", checks=checks), Templates())
    for part in ("wrong result", "differs at [0, 1]", "values: output 0 off by 3"):
        assert part in text
    assert "all equal" not in text
