"""One reference, one candidate, one verdict: what `cudal1-tui verify` does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cudal1_core.errors import UnjudgeableError
from cudal1_core.events import Event
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.verdict import Check, Verdict


async def verify(
    reference: Path,
    candidate: Path,
    options: JudgeOptions,
    emit: Callable[[Event], None] = lambda event: None,
) -> Verdict:
    """Judges the file `candidate` against the file `reference`. Raises RefereeError; all else is a verdict."""
    try:
        source = candidate.read_bytes()
    except OSError as error:
        return unjudgeable("bad_reference", f"{candidate}: the candidate cannot be read: {error.strerror}")
    async with Referee(options) as referee:
        try:
            await referee.open(reference)
            return await referee.judge(candidate.stem, source, emit)
        except UnjudgeableError as error:
            return unjudgeable(error.category, str(error))


def unjudgeable(category: str, reason: str) -> Verdict:
    return Verdict("unjudgeable", category=category, reason=reason)


def explain(verdict: Verdict) -> list[str]:
    """The evidence in plain words, a line each."""
    lines = [_headline(verdict)]
    lines += [_line(check) for check in verdict.checks]
    if verdict.labels:
        lines.append("labels: " + ", ".join(verdict.labels))
    if verdict.isolation:
        lines.append("the candidate ran behind: " + ", ".join(verdict.isolation))
    return lines


def _headline(verdict: Verdict) -> str:
    if not verdict.accepted:
        return f"{verdict.verdict}: {verdict.category}: {verdict.reason}"
    if verdict.speedup is None or verdict.speedup_interval is None:
        return "accepted"
    low, high = verdict.speedup_interval
    times = f"{verdict.reference_ms:.4g} ms to {verdict.candidate_ms:.4g} ms a call"
    return f"accepted: {verdict.speedup:.2f}x faster [{low:.2f} to {high:.2f}], {times}"


def _line(check: Check) -> str:
    return f"{'ok ' if check.passed else 'NO '} {check.name}: {check.detail}"
