"""What files that were accepted before are worth today: judged again, marked where they are wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from cudal1_core.accepted import Accepted, renew
from cudal1_core.errors import RefereeError, UnjudgeableError
from cudal1_core.events import AcceptedJudged, Event, Standing, TroubleMet
from cudal1_core.verdict import Verdict


class Judges(Protocol):
    """A referee with an open reference."""

    async def judge(self, candidate_id: str, source: str, emit: Callable[[Event], None]) -> Verdict: ...


def state_of(verdict: Verdict) -> Standing:
    if verdict.verdict == "rejected":
        return "wrong"
    if not verdict.accepted:
        return "unjudged"
    speedup = verdict.speedup or 1.0
    return "faster" if speedup > 1 else "slower" if speedup < 1 else "right"


async def judged(referee: Judges, accepted: Accepted) -> tuple[AcceptedJudged, Verdict]:
    """Judges the file against the reference that is open. A failure of the referee is told as `unjudged`."""
    try:
        source = accepted.path.read_bytes().decode("utf-8", "surrogateescape")
        verdict = await referee.judge(accepted.path.stem, source, lambda event: None)
    except OSError as error:
        verdict = Verdict("unjudgeable", reason=f"{accepted.path.name} cannot be read: {error.strerror}")
    except (RefereeError, UnjudgeableError) as error:
        verdict = Verdict("unjudgeable", reason=error.title)
    category = (verdict.category or "").replace("_", " ")
    event = AcceptedJudged(
        path=str(accepted.path),
        reference=str(accepted.reference),
        state=state_of(verdict),
        speedup=verdict.speedup,
        interval=verdict.speedup_interval,
        was=accepted.was,
        reason="" if verdict.accepted else ": ".join(part for part in (category, verdict.reason or "") if part),
    )
    return event, verdict


async def judge_again(referee: Judges, accepted: Accepted) -> list[Event]:
    """Judges the file and renews its header, or marks it; what is wrong is told as trouble too."""
    event, verdict = await judged(referee, accepted)
    told: list[Event] = [event]
    name, reference = accepted.path.name, accepted.reference.name
    try:
        renew(accepted, verdict)
        note = f"Its first line says so now. `cudal1-tui verify {reference} {name}` tells more."
    except OSError as error:
        note = f"It cannot be marked: {error.strerror}."
    if event.state == "wrong":
        told.append(TroubleMet(title=f"{name} is no longer right", meaning=event.reason, next_step=note))
    elif event.state == "slower":
        told.append(
            TroubleMet(title=f"{name} is now slower than {reference}", meaning=f"{verdict.speedup:.2f}x as fast")
        )
    return told
