"""Judges the cases of tests/cases through one warm referee for each reference, instead of a process a verdict."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from cudal1_core.errors import Cudal1Error, UnjudgeableError
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.referee.verify import unjudgeable
from cudal1_core.verdict import Verdict

CASES = Path(__file__).parent.parent / "cases"
TRIES = 4
MOST = 8  # in a group, so that none takes long by itself


@dataclass(frozen=True)
class Case:
    """One folder of tests/cases; `special` ones need the command line (own arguments, other runs first)."""

    name: str
    data: dict[str, Any]

    @property
    def special(self) -> bool:
        return any(key in self.data for key in ("argv", "before", "repeat", "chmod", "skip_if_root"))

    @property
    def reference(self) -> str:
        return str(self.data.get("reference", "reference.py"))

    @property
    def shared_reference(self) -> str:
        """Name under which cases of one reference are judged together."""
        shared = self.reference.startswith("../_refs/")
        return Path(self.reference).stem if shared else self.name

    @property
    def hangs(self) -> bool:
        """Meant to run into a time limit, so that a short one serves."""
        want = self.data["expect"]
        return self.data["kind"] == "robustness" and want.get("verdict") == "rejected" and "max_seconds" in want


def cases(device: str) -> list[Case]:
    found = []
    for path in sorted(CASES.glob("*/case.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        if device in data["device"]:
            found.append(Case(path.parent.name, data))
    return found


def wrong(case: Case, verdict: Verdict) -> list[str]:
    """What is not as the case expects."""
    want = case.data["expect"]
    found = []
    allowed = want.get("verdict")
    if allowed is not None and verdict.verdict not in (allowed if isinstance(allowed, list) else [allowed]):
        found.append(f"verdict is {verdict.verdict} ({verdict.category}: {verdict.reason})")
    if verdict.accepted:
        speed = verdict.speedup or 0.0
        if speed > want.get("speedup_max", float("inf")):
            found.append(f"speedup {speed} above {want['speedup_max']}")
        if speed < want.get("speedup_min", 0.0):
            found.append(f"speedup {speed} below {want['speedup_min']}")
        found += [f"label {label} is missing" for label in want.get("labels_all", ()) if label not in verdict.labels]
        found += [f"label {label} is wrong here" for label in want.get("labels_none", ()) if label in verdict.labels]
    elif not verdict.reason:
        found.append("no reason given")
    return found


@contextmanager
def working_copy() -> Iterator[Path]:
    """A fresh copy of the cases, so that nothing a candidate does reaches the originals."""
    top = Path(tempfile.mkdtemp(prefix="cases-"))
    try:
        shutil.copytree(CASES, top / "cases", ignore=shutil.ignore_patterns("case.json", "__pycache__"))
        yield top / "cases"
    finally:
        shutil.rmtree(top, ignore_errors=True)


async def _judge(referee: Referee, case: Case, source: bytes) -> Verdict:
    """Once more where too little was proven while other programs had the processor; never for a claim too large."""
    for _ in range(TRIES):
        try:
            verdict = await referee.judge(case.name, source, lambda event: None)
        except Cudal1Error as error:
            return unjudgeable("referee_failed", str(error))
        least = case.data["expect"].get("speedup_min", 0.0)
        if "foreign_load" not in verdict.labels or (verdict.speedup or 0.0) >= least:
            break
    return verdict


async def judge_all(
    chosen: list[Case],
    folder: Path,
    options: JudgeOptions,
    report: Callable[[Case, Verdict, float], None],
) -> None:
    """Every case once, those with the same reference one after another in one referee."""
    by_reference: dict[Path, list[Case]] = {}
    for case in chosen:
        by_reference.setdefault((folder / case.name / case.reference).resolve(), []).append(case)
    for reference, group in by_reference.items():
        start = time.monotonic()
        async with Referee(options) as referee:
            try:
                await referee.open(reference)
                refusal = None
            except UnjudgeableError as error:
                refusal = unjudgeable(error.category, str(error))
            for case in group:
                candidate = folder / case.name / "candidate.py"
                if refusal:
                    verdict = refusal
                elif not candidate.exists():
                    verdict = unjudgeable("bad_reference", f"{candidate}: there is no such file")
                else:
                    verdict = await _judge(referee, case, candidate.read_bytes())
                report(case, verdict, time.monotonic() - start)
                start = time.monotonic()


def groups(device: str) -> list[list[Case]]:
    """Ordinary cases that can share a referee: one reference, and the same patience."""
    ordinary = sorted((c for c in cases(device) if not c.special), key=lambda c: (c.shared_reference, c.hangs))
    alike = [list(group) for _, group in groupby(ordinary, key=lambda c: (c.shared_reference, c.hangs))]
    return [group[start : start + MOST] for group in alike for start in range(0, len(group), MOST)]


def failures(group: list[Case], device: str) -> dict[str, list[str]]:
    """What is not as expected, by case. Cases that are meant to hang are judged with short limits."""
    options = JudgeOptions(device=device, timing_budget_s=2.0)
    if group[0].hangs:
        options = replace(options, timeout_s=3.0, build_timeout_s=8.0)
    found: dict[str, list[str]] = {}

    def report(case: Case, verdict: Verdict, seconds: float) -> None:
        if bad := wrong(case, verdict):
            found[case.name] = bad

    with working_copy() as folder:
        asyncio.run(judge_all(group, folder, options, report))
    return found


def main(device: str, only: str = "") -> None:
    """Prints a line a case; for a look outside pytest."""
    failed = 0

    def report(case: Case, verdict: Verdict, seconds: float) -> None:
        nonlocal failed
        bad = wrong(case, verdict)
        failed += bool(bad)
        print(
            f"{'FAIL' if bad else 'ok  '} {case.name:42s} {seconds:5.1f}s {verdict.verdict} {verdict.category or ''}"
            f" {verdict.speedup or ''} {','.join(verdict.labels)} {'; '.join(bad)[:300]}",
            flush=True,
        )

    names = only.split(",") if only else []
    chosen = [c for c in cases(device) if not c.special and (not names or any(n in c.name for n in names))]
    with working_copy() as folder:
        patient = JudgeOptions(device=device, timing_budget_s=2.0)
        for options in (patient, replace(patient, timeout_s=3.0, build_timeout_s=8.0)):
            group = [case for case in chosen if case.hangs is (options is not patient)]
            asyncio.run(judge_all(group, folder, options, report))
    print(f"{failed} of {len(chosen)} cases failed")


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
