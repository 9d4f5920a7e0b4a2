"""What the reference is also timed as: torch.compile, a CUDA graph. Which there are, and what is known of them.

A baseline is timed in pairs against eager by the protocol that times candidates. What is kept is that ratio, so that
a later run needs only eager's own time.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from cudal1_core.errors import Cudal1Error, RefereeError
from cudal1_core.events import BaselineTimed, Event, TroubleMet

if TYPE_CHECKING:
    from cudal1_core.archive import Archive
    from cudal1_core.reference import Task

SETTLED = 0.1  # half interval, relative, up to which a ratio is kept for later runs
COMPILERS = ("c++", "g++", "clang++")

Which = Literal["eager", "known", "all"]  # known: eager, and what the archive has of the others


@dataclass(frozen=True, slots=True)
class Timed:
    """A baseline against eager."""

    ratio: float  # eager's time over the baseline's
    half_interval: float  # relative


@runtime_checkable
class TimesBaselines(Protocol):
    """The part of a referee that baselines need."""

    task: Task | None

    def baseline_key(self) -> str: ...

    def know_baseline(self, name: str, ratio: float) -> BaselineTimed: ...

    async def time_baseline(self, name: str) -> Timed: ...


def others(device: str) -> tuple[str, ...]:
    """All but eager that can be had on a device."""
    if device != "cpu":
        return ("compile", "compile-reduce-overhead", "cuda-graph")
    return ("compile",) if any(map(shutil.which, COMPILERS)) else ()


def key(task: Task, helpers: Mapping[str, bytes], versions: Mapping[str, str], mode: str) -> str:
    """Hexadecimal digits that stand for all that a baseline's time depends on."""
    facts = [task.source, task.model, task.device_name, task.inputs, task.flags, dict(versions), mode]
    parts = [json.dumps(facts, sort_keys=True).encode("utf-8", "surrogatepass")]
    for name, content in sorted(helpers.items()):
        parts += [name.encode(), content]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


async def tell_baselines(
    referee: TimesBaselines,
    archive: Archive,
    which: Literal["known", "all"],
    emit: Callable[[Event], None],
    *,
    quietly: bool = False,
) -> None:
    """Emits those that the archive knows; with `all`, times the others and keeps them.

    What cannot be timed is told as trouble, unless it was not asked for (`quietly`). Raises RefereeError.
    """
    assert referee.task is not None
    try:
        known = archive.baselines(referee.baseline_key())
    except sqlite3.Error:  # what was known is then timed anew
        known = {}
    for name in others(referee.task.device):
        ratio = known.get(name)
        if ratio is None and which == "all":
            try:
                timed = await referee.time_baseline(name)
            except RefereeError:
                raise
            except Cudal1Error as error:
                if not quietly:
                    emit(TroubleMet(title=error.title, meaning=error.meaning, next_step=error.next_step))
                continue
            ratio = timed.ratio
            if timed.half_interval <= SETTLED:  # what was timed on a crowded machine is shown, and timed again
                _keep(archive, referee.baseline_key(), name, ratio)
        if ratio is not None:
            emit(referee.know_baseline(name, ratio))


def _keep(archive: Archive, key: str, name: str, ratio: float) -> None:
    try:
        archive.keep_baseline(key, name, ratio)
    except sqlite3.Error:
        return  # it is shown all the same, and timed again another day
