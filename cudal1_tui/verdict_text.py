"""A verdict for a person: a short block, or every check with its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudal1_core.versus import EAGER, versus
from rich.console import Console
from rich.text import Text

from cudal1_tui.advice_text import advice_lines
from cudal1_tui.commands.check_words import CHECKS
from cudal1_tui.plain import one_line
from cudal1_tui.words import LABELS, interval_text, ms_text, roofline_text, speedup_text

if TYPE_CHECKING:
    from cudal1_core.advice.advice import Advice
    from cudal1_core.referee.verify import Judgement
    from cudal1_core.reference import Task
    from cudal1_core.verdict import Check, Verdict


def print_verdict(judgement: Judgement, advice: Advice | None, *, explain: bool, to_errors: bool = False) -> None:
    console = Console(stderr=to_errors, highlight=False)
    for line in lines(judgement.verdict, explain=explain, task=judgement.task, advice=advice):
        console.print(line, soft_wrap=True)


def lines(verdict: Verdict, *, explain: bool, task: Task | None = None, advice: Advice | None = None) -> list[Text]:
    """The block line by line; foreign text is cleaned, never read as markup."""
    found = [_headline(verdict)]
    if verdict.reference_ms is not None and verdict.candidate_ms is not None:
        device = one_line(str(verdict.device.get("name", "")))
        times = f"  reference {ms_text(verdict.reference_ms)}, candidate {ms_text(verdict.candidate_ms)}"
        found.append(Text(times + (f" on {device}" if device else "")))
    if verdict.roofline:
        found.append(Text(f"  {roofline_text(verdict.roofline)}"))
    if verdict.baselines:
        told = ", ".join(_baseline(verdict, name) for name in verdict.baselines)
        found.append(Text(f"  the reference by itself: {told}"))
    for label in verdict.labels:
        found.append(Text(f"  label {label}: {LABELS.get(label, '')}".rstrip(": "), style="yellow"))
    passed = sum(check.passed for check in verdict.checks)
    if verdict.checks:
        more = "" if explain else "; --explain shows the evidence"
        found.append(Text(f"  {passed} of {len(verdict.checks)} checks passed{more}", style="dim"))
    if explain:
        found += _of_task(task) + _evidence(verdict)
    return found + (advice_lines(advice, explain=explain) if advice is not None else [])


def _of_task(task: Task | None) -> list[Text]:
    """What was found of the reference before there was any candidate."""
    if task is None or not task.checks:
        return []
    return [Text("  the task:", style="bold"), *map(_check, task.checks), Text("  the candidate:", style="bold")]


def _check(check: Check) -> Text:
    meaning = CHECKS.get(check.name, "")
    told = f"{meaning} {one_line(check.detail)}".strip()
    return Text(f"  {'✓' if check.passed else '✗'} {one_line(check.name)} - {told}")


def _baseline(verdict: Verdict, name: str) -> str:
    against = None if name == EAGER else versus(verdict.speedup, verdict.baselines, name)
    vs = f" (the candidate is {speedup_text(against)} of it)" if against else ""
    return f"{name} {ms_text(verdict.baselines[name])}{vs}"


def _headline(verdict: Verdict) -> Text:
    if verdict.accepted:
        interval = interval_text(verdict.speedup_interval)
        speed = f"{speedup_text(verdict.speedup)} {interval}".rstrip() if verdict.speedup else "not timed"
        return Text.assemble(("accepted", "bold"), f"  {speed}")
    category = (verdict.category or "").replace("_", " ")
    reason = one_line(verdict.reason or "")
    return Text.assemble((verdict.verdict, "bold"), f"  {category}: {reason}" if category else f"  {reason}")


def _evidence(verdict: Verdict) -> list[Text]:
    found = [_check(check) for check in verdict.checks]
    if verdict.win:
        found.append(Text(f"  what ran, by the candidate's own account: {one_line(verdict.win)}"))
    if verdict.isolation:
        found.append(Text(f"  isolation: {one_line(', '.join(verdict.isolation))}"))
    if verdict.versions:
        told = ", ".join(f"{name} {version}" for name, version in verdict.versions.items())
        found.append(Text(f"  versions: {one_line(told)}"))
    return found
