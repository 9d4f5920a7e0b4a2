"""A save becomes a run; a newer save stops the older run; what was accepted is judged again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from cudal1_core.accept import write_accepted
from cudal1_core.accepted import accepted_of
from cudal1_core.archive import Archive
from cudal1_core.candidate import Candidate
from cudal1_core.errors import UsageError
from cudal1_core.events import (
    AcceptedJudged,
    Event,
    ReferenceSeen,
    RunFinished,
    RunStarted,
    TaskDescribed,
    TroubleMet,
    WatchStarted,
)
from cudal1_core.paths import new_run_folder
from cudal1_core.reference import Task
from cudal1_core.rounds import Run, RunOptions
from cudal1_core.verdict import Verdict
from cudal1_core.watch.selection import Selection
from cudal1_core.watch.session import Watching

from tests.unit.scripted import ScriptedPolicy, ScriptedReferee, code, make_task, whole
from tests.watch.editors import vim
from tests.watch.references import reference

PATIENCE_S = 30


class Reader(ScriptedReferee):
    """Reads the file that it opens."""

    async def open(self, reference: Path) -> Task:
        source = reference.read_text()
        return replace(make_task(source), path=str(reference))


@dataclass
class Parts:
    """Makes scripted referees and policies for the runs of a watch."""

    gate: asyncio.Event | None = None  # where set, judgements wait
    verdicts: dict[str, Verdict | Exception] = field(default_factory=dict)
    referees: list[Reader] = field(default_factory=list)

    async def take(self) -> tuple[Reader, ScriptedPolicy]:
        self.referees.append(Reader(gate=self.gate, verdicts=self.verdicts))
        return self.referees[-1], ScriptedPolicy([whole("fusion")])

    async def give_back(self, parts: tuple[Reader, ScriptedPolicy]) -> None:
        self.referees.remove(parts[0])

    def refill(self) -> None:
        """Nothing is started ahead."""

    async def close(self) -> None:
        """Nothing is held."""


@dataclass
class Told:
    """A watch and what it told."""

    watching: Watching
    parts: Parts
    stream: AsyncIterator[Event]
    events: list[Event] = field(default_factory=list)

    async def until(self, wanted: Callable[[Event], bool]) -> Event:
        async with asyncio.timeout(PATIENCE_S):
            async for event in self.stream:
                self.events.append(event)
                if wanted(event):
                    return event
        raise AssertionError("the watch has ended")

    async def until_a(self, kind: type[Event]) -> Event:
        return await self.until(lambda event: isinstance(event, kind))

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


@asynccontextmanager
async def watch(*paths: Path, parts: Parts | None = None, keep_open: bool = False) -> AsyncIterator[Told]:
    parts = parts or Parts()
    archive = Archive()

    def make_run(path: Path, pair: tuple[Reader, ScriptedPolicy]) -> Run:
        options = RunOptions(rounds=1, group=1, keep_open=keep_open)
        folder = new_run_folder(paths[0].parent)
        return Run(path, options, *pair, archive, folder, accepted=accepted_of(path))

    watching = Watching(Selection(list(paths)), make_run, parts)  # type: ignore[arg-type]
    try:
        yield Told(watching, parts, watching.events())
    finally:
        await watching.stop()
        archive.close()


def task_of(event: Event) -> Task:
    assert isinstance(event, TaskDescribed)
    return event.task


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(reference())
    return path


async def test_a_named_file_is_run_at_once_and_on_each_save(model: Path) -> None:
    async with watch(model) as told:
        assert task_of(await told.until_a(TaskDescribed)).source == reference()
        await told.until_a(RunFinished)
        vim(model, reference(2))
        assert task_of(await told.until_a(TaskDescribed)).source == reference(2)
        await told.until_a(RunFinished)
        assert len(told.of(TaskDescribed)) == 2


async def test_comments_and_spacing_start_nothing(model: Path) -> None:
    async with watch(model) as told:
        await told.until_a(RunFinished)
        vim(model, "# a comment\n" + reference())
        await told.until(lambda event: isinstance(event, ReferenceSeen) and event.state == "unchanged")
        vim(model, reference(2))
        await told.until_a(TaskDescribed)
        assert len(told.of(TaskDescribed)) == 2


async def test_a_newer_save_stops_the_older_run(model: Path) -> None:
    async with watch(model, parts=Parts(gate=asyncio.Event())) as told:
        await told.until_a(TaskDescribed)
        await told.parts.referees[0].judging.wait()
        vim(model, reference(2))
        ended = await told.until_a(RunFinished)
        assert isinstance(ended, RunFinished)
        assert ended.reason == "stopped"
        assert told.parts.referees[0].closed
        assert task_of(await told.until_a(TaskDescribed)).source == reference(2)


async def test_a_newer_save_of_another_file_goes_first(model: Path) -> None:
    other = model.with_name("other.py")
    other.write_text(reference(10))
    async with watch(model, other.parent, parts=Parts(gate=asyncio.Event())) as told:
        await told.until_a(TaskDescribed)
        await told.parts.referees[0].judging.wait()
        assert told.parts.gate is not None
        vim(other, reference(11))
        assert task_of(await told.until_a(TaskDescribed)).source == reference(11)
        told.parts.gate.set()
        assert task_of(await told.until_a(TaskDescribed)).source == reference()  # what was cut off comes after it


async def test_files_of_a_folder_are_run_when_they_are_saved(model: Path) -> None:
    async with watch(model.parent) as told:
        started = await told.until_a(WatchStarted)
        assert isinstance(started, WatchStarted)
        assert started.references == 1
        vim(model, reference(2))
        assert task_of(await told.until_a(TaskDescribed)).source == reference(2)
        assert len(told.of(RunStarted)) == 1


async def test_a_file_that_does_not_parse_stops_its_run_and_waits(model: Path) -> None:
    async with watch(model, parts=Parts(gate=asyncio.Event())) as told:
        await told.until_a(TaskDescribed)
        await told.parts.referees[0].judging.wait()
        vim(model, "class Model(:\n")
        seen = await told.until_a(ReferenceSeen) if not told.of(RunFinished) else None
        if isinstance(seen, ReferenceSeen) and seen.state != "unreadable":
            await told.until(lambda event: isinstance(event, ReferenceSeen) and event.state == "unreadable")
        if not told.of(RunFinished):
            await told.until_a(RunFinished)
        vim(model, reference())  # as it was: the run that was cut off begins again
        assert task_of(await told.until_a(TaskDescribed)).source == reference()
        assert not told.of(TroubleMet)


async def test_a_run_that_is_done_is_left_open_for_decisions(model: Path) -> None:
    async with watch(model, keep_open=True) as told:
        await told.until_a(RunFinished)
        told.watching.decide("c01", "fed")
        decided = await told.until(lambda event: event.name == "decision_made")
        assert decided.candidate == "c01"  # type: ignore[attr-defined]
        vim(model, reference(2))
        assert task_of(await told.until_a(TaskDescribed)).source == reference(2)


def accept(model: Path, word: str) -> Path:
    task = replace(make_task(), path=str(model))
    return write_accepted(task, Candidate("c01", 1, "p", code(word), ""), Verdict("accepted", speedup=3.0))


async def test_what_was_accepted_is_judged_again_and_marked(model: Path) -> None:
    path = accept(model, "before")
    wrong = Verdict("rejected", "wrong_result", "differs in every element")
    async with watch(model, parts=Parts(verdicts={"before": wrong})) as told:
        judged = await told.until_a(AcceptedJudged)
        assert isinstance(judged, AcceptedJudged)
        assert (judged.state, judged.was, judged.path) == ("wrong", 3.0, str(path))
        trouble = await told.until_a(TroubleMet)
        assert isinstance(trouble, TroubleMet)
        assert "no longer right" in trouble.title
        assert path.read_text().startswith("# NO LONGER RIGHT as model.py")
        assert code("before") in path.read_text()
        await told.until_a(RunFinished)
        assert len(told.of(TaskDescribed)) == 1  # marking it is no save


async def test_what_is_still_right_gets_its_new_figure(model: Path) -> None:
    path = accept(model, "before")
    now = Verdict("accepted", speedup=2.5, speedup_interval=(2.4, 2.6), device={"name": "a processor"})
    async with watch(model, parts=Parts(verdicts={"before": now})) as told:
        judged = await told.until_a(AcceptedJudged)
        assert isinstance(judged, AcceptedJudged)
        assert (judged.state, judged.speedup, judged.was) == ("faster", 2.5, 3.0)
        assert path.read_text().startswith("# 2.50x [2.40, 2.60] as fast as model.py (Model), on a processor\n")


async def test_what_keeps_it_from_watching_is_raised(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from watchdog.observers.inotify import InotifyObserver

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(InotifyObserver, "schedule", full)
    async with watch(model) as told:
        with pytest.raises(UsageError, match="too much to watch"):
            await told.until_a(WatchStarted)
