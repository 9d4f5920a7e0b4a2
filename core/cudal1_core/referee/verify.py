"""One reference, one candidate, one verdict: what `cudal1-tui verify` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cudal1_core.archive import Archive
from cudal1_core.baselines import Which, tell_baselines
from cudal1_core.errors import UnjudgeableError
from cudal1_core.events import Event, PairsMeasured
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and what it rests on."""

    verdict: Verdict
    helpers: Mapping[str, bytes] = field(default_factory=dict)  # modules of the user that the reference imported
    measured: PairsMeasured | None = None  # None where nothing was timed


async def verify(
    reference: Path,
    candidate: Path,
    options: JudgeOptions,
    emit: Callable[[Event], None] = lambda event: None,
    *,
    archive: Archive | None = None,
    baselines: Which = "known",
) -> Judgement:
    """Judges the file `candidate` against the file `reference`. Raises RefereeError; all else is a verdict.

    With an archive, the verdict carries the baselines that it knows, or with "all" every one.
    """
    measured: list[PairsMeasured] = []

    def on_event(event: Event) -> None:
        if isinstance(event, PairsMeasured):
            measured.append(event)
        emit(event)

    try:
        source = candidate.read_bytes()
    except OSError as error:
        return Judgement(unjudgeable("bad_reference", f"{candidate}: the candidate cannot be read: {error.strerror}"))
    async with Referee(options) as referee:
        try:
            await referee.open(reference)
            if archive is not None and baselines != "eager":
                await tell_baselines(referee, archive, baselines, emit)
            verdict = await referee.judge(candidate.stem, source, on_event)
        except UnjudgeableError as error:
            verdict = unjudgeable(error.category, str(error))
        return Judgement(verdict, referee.helpers, measured[-1] if measured else None)


def unjudgeable(category: str, reason: str) -> Verdict:
    return Verdict("unjudgeable", category=category, reason=reason)
