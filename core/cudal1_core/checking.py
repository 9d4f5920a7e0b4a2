"""Accepted files judged again, reference by reference: what `cudal1-tui check` does."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from cudal1_core.accepted import Accepted, accepted_of, is_ours, read_accepted, renew
from cudal1_core.errors import UnjudgeableError, UsageError
from cudal1_core.events import AcceptedJudged, Standing
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.standing import judged
from cudal1_core.verdict import Verdict
from cudal1_core.watch.selection import Selection


def find(paths: Sequence[Path]) -> list[Accepted]:
    """Accepted files: those named, those of named references, those in named folders. Raises UsageError.

    Files that are neither accepted nor have something accepted beside them are passed over, so that pre-commit may
    name whatever was changed.
    """
    found: dict[Path, Accepted] = {}
    for path in paths:
        for accepted in _in_folder(path.absolute()) if path.is_dir() else _of_file(path):
            found.setdefault(accepted.path, accepted)
    return sorted(found.values(), key=lambda one: (one.reference, one.path))


async def check(files: Sequence[Accepted], options: JudgeOptions, *, write: bool) -> AsyncIterator[AcceptedJudged]:
    """Judges them in order; `write` renews each header or marks it. Raises RefereeError where nothing can be judged."""
    for (reference, model), group in groupby(files, key=lambda one: (one.reference, one.model)):
        together = list(group)
        if not reference.is_file():
            for accepted in together:
                yield _without(accepted, "gone", f"{reference} is not there")
            continue
        async with Referee(replace(options, model=options.model or model)) as referee:
            try:
                await referee.open(reference)
            except UnjudgeableError as error:
                for accepted in together:
                    yield _without(accepted, "unjudged", str(error).replace("\n", " "))
                continue
            for accepted in together:
                event, verdict = await judged(referee, accepted)
                yield _written(accepted, event, verdict) if write else event


def _written(accepted: Accepted, event: AcceptedJudged, verdict: Verdict) -> AcceptedJudged:
    try:
        renew(accepted, verdict)
    except OSError as error:
        note = f"{accepted.path.name} cannot be written: {error.strerror}"
        return replace(event, reason="; ".join(part for part in (event.reason, note) if part))
    return event


def _without(accepted: Accepted, state: Standing, reason: str) -> AcceptedJudged:
    return AcceptedJudged(
        path=str(accepted.path),
        reference=str(accepted.reference),
        state=state,
        was=accepted.was,
        reason=reason,
    )


def _of_file(path: Path) -> list[Accepted]:
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder", "", "Check the path.")
    if path.suffix != ".py":
        return []
    try:
        accepted = read_accepted(path.absolute())
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "", "Look at its permissions.") from error
    return [accepted] if accepted else accepted_of(path.absolute())


def _in_folder(folder: Path) -> list[Accepted]:
    selection, found = Selection([folder]), []
    for place, names, files in os.walk(folder):
        here = Path(place)
        names[:] = sorted(name for name in names if selection.enters(here / name))
        for path in (here / name for name in sorted(files) if name.endswith(".py")):
            if is_ours(path) and not selection.ignores(path) and (accepted := read_accepted(path)):
                found.append(accepted)
    return found
