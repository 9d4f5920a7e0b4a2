"""An update of the policy between rounds: what the trainer is asked, what comes of it, and what its failure costs."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cudal1_core.errors import PolicyError, UsageError
from cudal1_core.events import Event, PolicyLoading, RoundStarted, RunFinished, TroubleMet
from cudal1_core.rounds import Run, RunOptions
from cudal1_core.updating import Updater, Updates

from tests.unit.scripted import Bench, ScriptedPolicy, whole

TRAINER = """
import json, pathlib, sys, time
words = sys.argv[1:]
out = pathlib.Path(words[words.index("--out") + 1])
(out / "words.json").write_text(json.dumps(words))
print("a library prints this", flush=True)
phase = {"event": "training_phase", "at": 0, "stage": "rl", "what": "contrastive GRPO", "total": 1}
print(json.dumps(phase), flush=True)
BODY
"""
KEEPS = "(out / 'rl/result').mkdir(parents=True); (out / 'rl/result/adapter_config.json').write_text('{}')"
FAILS = (
    "trouble = {'event': 'trouble_met', 'at': 0, 'title': 'No memory', 'meaning': 'It has 1 GB.'}\n"
    "print(json.dumps(trouble), flush=True)\nsys.exit(3)"
)
HANGS = "import os; (out / 'pid').write_text(str(os.getpid())); time.sleep(3600)"


def updates(folder: Path, body: str) -> Updates:
    script = folder / "trainer.py"
    script.write_text(TRAINER.replace("BODY", body))
    return Updates(
        reference=Path("/w/model.py"),
        model="/models/tiny",
        folder=folder,
        archive=folder / "archive.db",
        adapter=Path("/adapters/first"),
        group=1,
        command=(sys.executable, str(script)),
    )


@dataclass
class Adaptable(ScriptedPolicy):
    name: str = "adaptable"
    adapters: list[Path] = field(default_factory=list)

    async def adapt(self, adapter: Path) -> None:
        self.adapters.append(adapter)


def play(bench: Bench, updater: Updater) -> tuple[list[Event], Adaptable]:
    policy = Adaptable([whole("a"), whole("b"), whole("c")])
    run = Run(
        Path("/w/model.py"),
        RunOptions(rounds=3, update=True),
        bench.referee,
        policy,
        bench.archive,
        bench.folder,
        updater=lambda: updater,
    )

    async def told() -> list[Event]:
        return [event async for event in run.events()]

    return asyncio.run(told()), policy


def test_each_step_begins_where_the_last_one_ended(tmp_path: Path) -> None:
    updater, told = Updater(updates(tmp_path, KEEPS)), list[str]()

    async def twice() -> list[Path]:
        return [await updater.step(told.append), await updater.step(told.append)]

    first, second = asyncio.run(twice())
    assert (first / "adapter_config.json").is_file()
    assert first != second
    assert told == ["updating the model: contrastive GRPO"] * 2
    words = [(place.parents[1] / "words.json").read_text() for place in (first, second)]
    assert '"model.adapter=/adapters/first"' in words[0]
    assert f'"model.adapter={first}"' in words[1]
    for asked in ("model.name=/models/tiny", "tasks.path=/w/model.py", "rl.steps=1", "rl.group=2"):
        assert asked in words[0]


def test_before_each_round_but_the_first_the_policy_gets_a_new_adapter(bench: Bench, tmp_path: Path) -> None:
    events, policy = play(bench, Updater(updates(tmp_path, KEEPS)))
    assert [adapter.parents[1].name for adapter in policy.adapters] == ["1", "2"]
    order = [
        event.what if isinstance(event, PolicyLoading) else event.round
        for event in events
        if isinstance(event, PolicyLoading | RoundStarted)
    ]
    step = ["updating the model: contrastive GRPO", ""]
    assert order == [1, *step, 2, *step, 3]


def test_an_update_can_be_asked_for_amid_a_run_and_after_it(bench: Bench, tmp_path: Path) -> None:
    trainer = Updater(updates(tmp_path, KEEPS))
    policy = Adaptable([whole("a"), whole("b"), whole("c"), whole("d")])
    options = RunOptions(rounds=2, keep_open=True)
    run = Run(Path("/w/model.py"), options, bench.referee, policy, bench.archive, bench.folder, updater=lambda: trainer)
    told = []

    async def play() -> None:
        events = run.events()
        async for event in events:
            if isinstance(event, PolicyLoading):
                told.append(event.what)
                if event.what == "" and run.ended:
                    run.extend(1)
            elif isinstance(event, RoundStarted):
                told.append(f"round {event.round}")
                if event.round == 1:
                    run.update()
            elif isinstance(event, RunFinished):
                told.append(event.reason)
                if event.reason == "done" and len(policy.adapters) > 1:
                    await run.close()
                else:
                    run.update()

    asyncio.run(play())
    step = ["updating the model: contrastive GRPO", ""]
    assert told == ["round 1", *step, "round 2", "done", *step, "round 3", "done"]


def test_where_there_is_nothing_to_train_that_is_said_at_once(bench: Bench) -> None:
    def nothing() -> Updater:
        raise UsageError("The playbook policy has no model that could be trained")

    policy = ScriptedPolicy([whole("a")])
    run = Run(Path("/w/model.py"), RunOptions(), bench.referee, policy, bench.archive, bench.folder, updater=nothing)
    with pytest.raises(UsageError, match="no model"):
        run.update()


def test_a_step_that_fails_is_told_and_the_rounds_go_on(bench: Bench, tmp_path: Path) -> None:
    events, policy = play(bench, Updater(updates(tmp_path, FAILS)))
    assert policy.adapters == []
    troubles = [event for event in events if isinstance(event, TroubleMet)]
    assert [trouble.title for trouble in troubles] == ["The model could not be updated"] * 2
    assert "No memory. It has 1 GB." in troubles[0].meaning
    assert [event.round for event in events if isinstance(event, RoundStarted)] == [1, 2, 3]
    assert isinstance(events[-1], RunFinished)
    assert events[-1].reason == "done"


def test_an_ending_without_an_adapter_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="could not be updated"):
        asyncio.run(Updater(updates(tmp_path, "pass")).step(lambda what: None))


def test_a_step_that_is_cut_off_ends_its_process(tmp_path: Path) -> None:
    async def cut() -> None:
        begun = asyncio.Event()
        step = asyncio.create_task(Updater(updates(tmp_path, HANGS)).step(lambda what: begun.set()))
        await begun.wait()
        place = tmp_path / "updates" / "1" / "pid"
        while not place.exists() or not place.read_text():
            await asyncio.sleep(0.01)
        step.cancel()
        with pytest.raises(asyncio.CancelledError):
            await step
        pid = int(place.read_text())
        while _lives(pid):  # it has been killed, and may take a moment to be gone
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(cut(), 60))


def _lives(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
