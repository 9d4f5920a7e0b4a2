"""The contrastive prompt holds what the paper says it must."""

from __future__ import annotations

from cudal1_core.candidate import Candidate
from cudal1_core.extract import extract_code
from cudal1_core.policies.base import Judged
from cudal1_core.prompt import build_prompt
from cudal1_core.reference import Task
from cudal1_core.verdict import Verdict

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
