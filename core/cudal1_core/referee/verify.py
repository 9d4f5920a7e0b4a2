"""One reference, one candidate, one verdict: what `cudal1-tui verify` does."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from cudal1_core.archive import Archive
from cudal1_core.baselines import Which, tell_baselines
from cudal1_core.errors import UnjudgeableError
from cudal1_core.events import Event, PairsMeasured
from cudal1_core.referee import paper
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.reference import Task
from cudal1_core.verdict import Check, Verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and what it rests on."""

    verdict: Verdict
    helpers: Mapping[str, bytes] = field(default_factory=dict)  # modules of the user that the reference imported
    measured: PairsMeasured | None = None  # None where nothing was timed
    task: Task | None = None  # None where the reference could not be read


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

    With an archive, the verdict carries the baselines that it knows, or with "all" every one. Under the paper's rules a
    speedup that nobody would believe at once is judged a second time, on the next GPU if that is of the same kind, else
    in fresh processes on the same device.
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
        task = referee.task
        first = Judgement(verdict, referee.helpers, measured[-1] if measured else None, task)
    if options.timing != "paper" or task is None or verdict.speedup is None:
        return first
    if not paper.is_suspicious(verdict.speedup, _best(archive, task)):
        return first
    second, device = await _judge_elsewhere(reference, candidate.stem, source, options, task)
    return replace(first, verdict=second_look(verdict, second, device))


def second_look(first: Verdict, second: Verdict, device: str) -> Verdict:
    """What is left of the first verdict: all of it, all but its figure, or nothing where it is not accepted again."""
    if not second.accepted:
        return second
    settled = first.speedup is not None and paper.agree(first.speedup, second.speedup)
    told = ["discarded" if verdict.speedup is None else f"{verdict.speedup:.2f}x" for verdict in (first, second)]
    detail = f"{', then '.join(told)} in fresh processes on {device}; at most 10 % may lie between"
    checks = (*first.checks, Check("second measurement", settled, detail))
    if settled:
        return replace(first, checks=checks)
    labels = tuple(sorted({*first.labels, "unsettled"}))
    return replace(first, checks=checks, labels=labels, speedup=None, speedup_interval=None)


def _best(archive: Archive | None, task: Task) -> float | None:
    """Of this task on this device, as far as is known."""
    if archive is None:
        return None
    try:
        return max((judged.verdict.speedup or 0.0 for judged in archive.earlier(task, "")), default=None)
    except sqlite3.Error:
        return None


async def _judge_elsewhere(
    reference: Path, name: str, source: bytes, options: JudgeOptions, task: Task
) -> tuple[Verdict, str]:
    """A verdict by other processes, and the device it was reached on."""
    kind, _, index = task.device.partition(":")
    devices = [f"cuda:{int(index or 0) + 1}", "cuda:0"] if kind == "cuda" else []
    for device in (*(device for device in devices if device != task.device), task.device):
        async with Referee(replace(options, device=device)) as referee:
            try:
                other = await referee.open(reference)
                if other.device_name == task.device_name:
                    return await referee.judge(name, source, lambda event: None), device
            except UnjudgeableError as error:
                if error.category != "no_device":
                    return unjudgeable(error.category, str(error)), device
    raise AssertionError("the device it was first judged on has another name now")


def unjudgeable(category: str, reason: str) -> Verdict:
    return Verdict("unjudgeable", category=category, reason=reason)
