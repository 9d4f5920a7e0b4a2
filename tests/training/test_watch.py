"""A training in the workbench: its log as a run, and decisions that the training sees."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, closing
from pathlib import Path

import pytest
from cudal1_core.archive import Archive
from cudal1_core.candidate import Candidate
from cudal1_core.errors import UsageError
from cudal1_core.events import (
    CandidateWritten,
    Event,
    PolicyLoading,
    RunFinished,
    RunStarted,
    TaskDescribed,
    TrainingPhase,
    TrainingStepped,
    TroubleMet,
    VerdictReached,
    to_json,
)
from cudal1_core.verdict import Verdict
from cudal1_training.draws import pool_of

from cudal1_tui.commands.train_watch import WatchedTraining, main
from tests.unit.scripted import make_task

TASK = make_task()
CANDIDATE = Candidate("r1-1", 1, "rl", "class ModelNew: ...\n", "an answer")


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """A folder whose log holds one candidate, which is in the archive too."""
    folder = tmp_path / "out"
    folder.mkdir()
    place = str(folder)
    started = RunStarted(
        run="t", reference=place, policy="tiny", device="cpu", rounds=0, group=2, budget_s=None, folder=place
    )
    verdict = Verdict("accepted", speedup=1.5)
    story: list[Event] = [
        started,
        TrainingPhase(stage="rl", what="contrastive GRPO", total=4),
        TaskDescribed(task=TASK),
        CandidateWritten(candidate=CANDIDATE),
        VerdictReached(candidate="r1-1", verdict=verdict, seconds=1.0),
        TrainingStepped(stage="rl", step=1, total=4, metrics={"reward": 1.0}, left_s=120.0),
    ]
    with closing(Archive(tmp_path / "archive.db")) as archive:
        for event in story:
            archive.record("t-rl-1", event)
    (folder / "state.json").write_text(json.dumps({"archive": str(tmp_path / "archive.db")}))
    (folder / "events.jsonl").write_text("".join(f"{to_json(event)}\n" for event in story))
    return folder


async def seen(watched: WatchedTraining, last: type[Event]) -> list[Event]:
    found: list[Event] = []
    async with aclosing(watched.events()) as events:  # type: ignore[type-var]
        async for event in events:
            found.append(event)
            if isinstance(event, last):
                break
    return found


def test_what_was_told_comes_first_and_then_what_is_added(training: Path) -> None:
    async def play() -> list[Event]:
        watched = WatchedTraining(training)
        reading = asyncio.create_task(seen(watched, RunFinished))
        await asyncio.sleep(0)
        with (training / "events.jsonl").open("a") as log:
            log.write(to_json(RunFinished(reason="done", best=None, best_speedup=None)) + "\n")
        return await asyncio.wait_for(reading, 60)

    events = asyncio.run(play())
    assert isinstance(events[0], RunStarted)
    assert sum(isinstance(event, CandidateWritten) for event in events) == 1
    told = [event.what for event in events if isinstance(event, PolicyLoading)]
    assert told == ["in rl: contrastive GRPO", "at rl 1 of 4, 2 min left"]


def test_a_decision_reaches_the_next_prompts(training: Path) -> None:
    watched = WatchedTraining(training)
    with closing(Archive(training.parent / "archive.db")) as archive:
        watched.decide("r1-1", "fed")
        (fed,) = pool_of(archive, TASK, archive.mark())
        assert fed.fed
        watched.decide("r1-1", "dismissed")
        assert pool_of(archive, TASK, archive.mark()) == []


def test_a_decision_that_cannot_be_kept_is_told(training: Path) -> None:
    watched = WatchedTraining(training)
    watched.decide("rl-h1-1", "fed")
    events = asyncio.run(asyncio.wait_for(seen(watched, TroubleMet), 60))
    assert "held-out" in events[-1].meaning  # type: ignore[attr-defined]


def test_a_folder_without_a_training_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no training"):
        main(tmp_path)
