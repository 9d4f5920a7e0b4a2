"""What the page of the judged pairs says of their number is true."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

CASES = Path(__file__).parent.parent / "cases"


def test_the_page_counts_the_cases_rightly() -> None:
    cases = [json.loads(path.read_text(encoding="utf-8")) for path in CASES.glob("*/case.json")]
    kinds = Counter(case["kind"] for case in cases)
    cpu = sum("cpu" in case["device"] for case in cases)
    both = sum({"cpu", "cuda"} <= set(case["device"]) for case in cases)
    said = " ".join((CASES / "README.md").read_text(encoding="utf-8").split())
    assert f"{len(cases)} cases:" in said
    assert (
        f"{kinds['cheat']} cheats, {kinds['honest']} honest controls, {kinds['robustness']} robustness cases, "
        f"{kinds['bad_input']} bad inputs; {cpu} run on a CPU, the rest need CUDA, and {both} run on both" in said
    )


def test_each_case_is_named_as_its_folder() -> None:
    for path in CASES.glob("*/case.json"):
        assert json.loads(path.read_text(encoding="utf-8"))["name"] == path.parent.name
