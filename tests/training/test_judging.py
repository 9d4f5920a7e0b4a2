"""Rewards from the real referee, and what happens when it fails."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="trl is not installed")

from cudal1_core.archive import Archive
from cudal1_core.candidate import Candidate
from cudal1_core.errors import RefereeError, UsageError
from cudal1_core.events import Event, VerdictReached
from cudal1_core.prompt import build_prompt
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.reference import Task
from cudal1_core.verdict import Verdict
from cudal1_training import referees as module
from cudal1_training.contrastive import Scorer
from cudal1_training.draws import Draws
from cudal1_training.folder import PausedError, TrainingFolder
from cudal1_training.qualifying import qualify
from cudal1_training.referees import Asked, Referees
from cudal1_training.settings import RlSettings, Settings, read_settings
from cudal1_training.tasks import TrainTask
from cudal1_training.telling import Teller
from cudal1_training.watching import Stop
from cudal1_training.work import Work

from tests.e2e.workshop import REFERENCE, RIGHT, WRONG
from tests.unit.scripted import make_task

CONSTRUCTOR = """\
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward"""
NOT_DROP_IN = RIGHT.replace("    def forward", CONSTRUCTOR)


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    path = tmp_path / "reference.py"
    path.write_text(REFERENCE)
    return path


def answer(source: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": f"## Code Implementation\n```python\n{source}\n```\n"}]


def work(folder: TrainingFolder, referees: Referees, task: Task, path: Path) -> Work:
    archive = Archive(path / "archive.db")
    folder.state.id = "training"
    return Work(
        settings=folder.settings,
        folder=folder,
        archive=archive,
        referees=referees,
        tell=Teller(path / "events.jsonl", None),
        stop=Stop(),
        tasks={"t": task},
        held_out={},
    )


def test_right_code_earns_its_speedup_and_the_archive_shows_it_in_the_next_prompt(
    tmp_path: Path, reference: Path
) -> None:
    settings = read_settings(None, ["rl.smoothing=false", "rl.patience=2"])
    options = JudgeOptions(device="cpu", timing_budget_s=0.3)
    with Referees(options, 1, lambda event: None) as referees:
        task = referees.open(reference)
        here = work(TrainingFolder(tmp_path / "out", settings), referees, task, tmp_path)

        def draws(name: str) -> Draws:
            fit: Callable[..., object] = lambda task, chosen: (chosen, build_prompt(task, chosen))  # noqa: E731
            folder = here.folder.sub(name)
            return Draws(folder, here.tasks, here.archive, settings.rl, 0, fit, leader=True)  # type: ignore[arg-type]

        scorer = Scorer(here, draws("d"), here.tasks)
        found = scorer.rewards(
            [answer(RIGHT), answer(WRONG), answer(NOT_DROP_IN), "no code here", answer(RIGHT)], [1, 1, 1, 1, 1]
        )
        right, wrong, not_drop_in, nothing, twice = found
        assert right is not None
        assert right > 0
        assert twice == right  # judged once
        assert (wrong, not_drop_in, nothing) == (0.0, 0.0, 0.0)
        assert scorer.to_json()["draws"] == 1
        assert "unsqueeze(1) * matrix" in draws("e").get(2).prompt
        with pytest.raises(PausedError, match="same reward"):
            scorer.rewards(["nothing", "nothing", "nothing", "nothing"], [2, 2, 3, 3])
        again = Scorer(here, draws("d"), here.tasks)
        again.restore(scorer.to_json())
        assert again.last == 3
    written = (tmp_path / "events.jsonl").read_text()
    assert '"r1-1"' in written


class FailingReferee:
    """Opens, and fails on every candidate."""

    opened = 0

    def __init__(self, options: JudgeOptions) -> None:
        type(self).opened += 1

    async def open(self, path: Path) -> Task:
        return make_task()

    async def judge(self, *_: object) -> Verdict:
        raise RefereeError("the trusted worker ended", "killed by signal 9")

    async def close(self) -> None:
        """Nothing to end."""


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    monkeypatch.setattr(module, "Referee", FailingReferee)
    return []


def asked(name: str) -> Asked:
    return Asked(make_task(), Candidate(name, 1, "test", f"class ModelNew: {name!r}\n", ""))


def test_a_referee_that_fails_once_costs_a_verdict_and_one_that_stays_dead_pauses(failing: list[Event]) -> None:
    with Referees(JudgeOptions(), 1, failing.append) as referees:
        told: list[str] = []

        def reached(place: int, verdict: Verdict) -> None:
            told.append(verdict.verdict)

        (verdict,) = referees.judge([asked("a")], reached)
        assert told == ["unjudgeable"]
        assert verdict.verdict == "unjudgeable"  # no reward, neither good nor bad
        assert FailingReferee.opened == 2  # a fresh one had its try
        referees.judge([asked("b")], reached)
        with pytest.raises(PausedError, match="The referee fails") as caught:
            referees.judge([asked("c")], reached)
    assert "the same command goes on" in caught.value.next_step
    assert isinstance(failing[0], VerdictReached)


def test_tasks_that_a_wrong_program_could_pass_are_left_out_and_none_left_is_an_error(tmp_path: Path) -> None:
    constant = "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x * 0\n\n"
    constant += "def get_inputs():\n    return [torch.randn(64)]\n\ndef get_init_inputs():\n    return []\n"
    paths = {"constant": tmp_path / "constant.py", "broken": tmp_path / "broken.py"}
    paths["constant"].write_text(constant)
    paths["broken"].write_text("import torch\nraise SystemError('no')\n")
    tasks = [TrainTask(name, "f", str(path), "") for name, path in paths.items()]
    out = io.BytesIO()
    tell = Teller(tmp_path / "events.jsonl", out)
    with Referees(JudgeOptions(device="cpu"), 1, tell) as referees:
        with pytest.raises(UsageError, match="No task is left") as caught:
            qualify(tasks, tmp_path / "tasks.jsonl", referees, tell, Stop().check, weak=False)
        assert "constant_output" in caught.value.meaning
        assert "broken" in caught.value.meaning
        assert b"2 of 2 tasks are left out" in out.getvalue()
        known = qualify(tasks, tmp_path / "tasks.jsonl", referees, tell, Stop().check, weak=True)
        assert set(known) == {"constant"}


def test_settings_of_the_stage_are_those_of_the_paper() -> None:
    assert (RlSettings().clip, RlSettings().exemplar_count, RlSettings().exemplars) == (1.5, 2, "bucket")
    assert (Settings().sft.trials, Settings().sft.successes) == (20, 2)
