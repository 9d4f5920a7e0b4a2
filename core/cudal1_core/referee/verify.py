"""One reference, one candidate, one verdict: what `cudal1-tui verify` does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cudal1_core.errors import UnjudgeableError
from cudal1_core.events import Event
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.verdict import Verdict


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
