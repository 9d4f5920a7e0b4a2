"""The contrastive prompts of stage three, built from the archive as it is when each is drawn.

A draw is written down before it is used. So every process of a training shows one prompt to one group, although the
archive grows under them, and a training that was killed shows the same next prompt as it would have.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cudal1_core.archive import Archive
from cudal1_core.exemplars import ExemplarOptions, choose
from cudal1_core.policies.base import Judged
from cudal1_core.reference import Task

from cudal1_training.folder import PausedError, write_whole
from cudal1_training.settings import RlSettings

PATIENCE_S = 1800.0  # for the first process to write a draw down
LOOK_S = 0.05

Fit = Callable[[Task, tuple[Judged, ...]], tuple[tuple[Judged, ...], str] | None]


@dataclass(frozen=True, slots=True)
class Draw:
    number: int  # from 1: the draw counter
    task: str  # name
    prompt: str
    exemplars: tuple[str, ...]  # ids of candidates in the archive
    mark: int  # the archive as it was: its newest verdict


class Draws:
    """`fit` gives exemplars up until prompt and answer fit the model; tasks that do not fit at all are left out."""

    def __init__(
        self,
        folder: Path,
        tasks: dict[str, Task],
        archive: Archive,
        settings: RlSettings,
        seed: int,
        fit: Fit,
        *,
        leader: bool,
    ) -> None:
        self._folder = folder
        self._tasks = tasks
        self._archive = archive
        self._options = options_of(settings)
        self._seed = seed
        self._fit = fit
        self._leader = leader

    def from_number(self, number: int) -> Iterator[dict[str, Any]]:
        """Rows for the trainer, without end."""
        while True:
            draw = self.get(number)
            yield {"prompt": [{"role": "user", "content": draw.prompt}], "draw": draw.number, "task": draw.task}
            number += 1

    def get(self, number: int) -> Draw:
        """The draw as it was written down, or drawn now."""
        path = self._folder / f"{number:06d}.json"
        end = time.monotonic() + PATIENCE_S
        while not path.exists():
            if self._leader:
                write_whole(path, json.dumps(asdict(self._draw(number))))
            elif time.monotonic() > end:
                raise PausedError("The first process draws no prompts", f"{path} does not appear.", "Start again.")
            else:
                time.sleep(LOOK_S)
        data = json.loads(path.read_text("utf-8"))
        return Draw(**{**data, "exemplars": tuple(data["exemplars"])})

    def _draw(self, number: int) -> Draw:
        name = self._name(number)
        task = self._tasks[name]
        mark = self._archive.mark()
        pool = pool_of(self._archive, task, mark)
        seed = random.Random(f"draw {self._seed}/{number}").getrandbits(31)
        fitted = self._fit(task, choose(pool, self._options, seed))
        assert fitted is not None, "tasks that do not fit were left out before"
        shown, text = fitted
        return Draw(number, name, text, tuple(judged.candidate.id for judged in shown), mark)

    def _name(self, number: int) -> str:
        """Every task once, in random order, then again in another."""
        names = sorted(self._tasks)
        turn, place = divmod(number - 1, len(names))
        random.Random(f"order {self._seed}/{turn}").shuffle(names)
        return names[place]


def options_of(settings: RlSettings) -> ExemplarOptions:
    return ExemplarOptions(
        how=settings.exemplars,  # type: ignore[arg-type]
        count=settings.exemplar_count,
        width=settings.bucket_width,
        temperature=settings.bucket_temperature,
    )


def pool_of(archive: Archive, task: Task, mark: int) -> Sequence[Judged]:
    """What the archive held of a task at that mark; what a person fed is marked so, what was dismissed is left out."""
    found = archive.earlier(task, "", until=mark)
    fed = {one.judged.candidate.source_hash for one in archive.decided() if one.judged.fed}
    return [replace(judged, fed=judged.candidate.source_hash in fed) for judged in found]
