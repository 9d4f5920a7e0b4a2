"""How often advice is right on the judged pairs of tests/cases: static findings, known cheats, and a reviewer.

    python benchmarks/advice.py                                        # what is read, no model
    python benchmarks/advice.py --reviewer http://localhost:8000/v1#M  # a model's opinion on each

Cheats and honest programs of tests/cases are the truth; robustness cases are neither. The case base that comes with
the program holds none of these sources.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

from cudal1_core.advice.case_base import CaseBase
from cudal1_core.advice.findings import findings_of
from cudal1_core.advice.reviewer import Reviewer
from cudal1_core.advice.scoring import Score, score

CASES = Path(__file__).parent.parent / "tests" / "cases"


def judged() -> list[tuple[str, str, bool]]:
    """Source of the reference, of the candidate, and whether it cheats."""
    found = []
    for path in sorted(CASES.glob("*/case.json")):
        case, candidate = json.loads(path.read_text("utf-8")), path.parent / "candidate.py"
        reference = path.parent / case.get("reference", "reference.py")
        if case["kind"] in ("cheat", "honest") and candidate.is_file() and reference.is_file():
            texts = [file.read_text("utf-8", "replace") for file in (reference, candidate)]
            found.append((texts[0], texts[1], case["kind"] == "cheat"))
    return found


async def opinions(reviewer: Reviewer, pairs: list[tuple[str, str, bool]]) -> list[bool | None]:
    base = CaseBase()
    said = []
    for reference, candidate, _ in pairs:
        cases = [base.case(one.name) for one in base.similar(candidate, least=0.0)]
        said.append((await reviewer.review(reference, candidate, cases)).cheat)
    await reviewer.close()
    return said


def line(name: str, found: Score) -> str:
    figures = [f"{figure:.2f}" if figure is not None else "-" for figure in (found.precision, found.recall)]
    counts = f"{found.caught} caught, {found.missed} missed, {found.wronged} wronged, {found.cleared} cleared"
    return f"{name:<16} precision {figures[0]}  recall {figures[1]}  {counts}, {found.silent} without an opinion"


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--reviewer", metavar="URL#MODEL")
    options = parser.parse_args()
    pairs, base = judged(), CaseBase()
    truth = [cheats for _, _, cheats in pairs]
    findings = [any(finding.suspect for finding in findings_of(candidate)) for _, candidate, _ in pairs]
    similar = [bool(base.similar(candidate)) for _, candidate, _ in pairs]
    print(line("findings", score(zip(findings, truth, strict=True))))
    print(line("known cheats", score(zip(similar, truth, strict=True))))
    if options.reviewer:
        said = asyncio.run(opinions(Reviewer(options.reviewer), pairs))
        print(line("reviewer", score(zip(said, truth, strict=True))))


if __name__ == "__main__":
    main()
