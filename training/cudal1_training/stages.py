"""A whole training: tasks and their split, the stages one after another, a look at held-out tasks after each."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

import torch
from cudal1_core.archive import Archive
from cudal1_core.events import RunStarted, TrainingPhase, TrainingReported, TrainingStarted
from cudal1_core.paths import archive_path
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.trained import Trained, register

from cudal1_training import contrastive, models, self_supervised, sft
from cudal1_training.evaluating import evaluate, read_rows
from cudal1_training.folder import TrainingFolder
from cudal1_training.models import Start
from cudal1_training.qualifying import qualify
from cudal1_training.referees import Referees
from cudal1_training.reporting import StageFigures, stage_figures, write_report
from cudal1_training.settings import Settings
from cudal1_training.tasks import TrainTask, find_tasks, read_split, split, write_split
from cudal1_training.telling import Teller
from cudal1_training.watching import Stop
from cudal1_training.work import Work, rank, together, world

STAGES = {"sft": sft.run, "self": self_supervised.run, "rl": contrastive.run}
BEFORE = "start"  # name of the model in reports before any stage
ROOM = 1e9  # bytes of disk without which nothing is begun
LONGEST_WAIT = timedelta(days=7)  # of one process for another, which may judge for days


def begin(settings: Settings) -> None:
    """Joins the processes of a training that has several."""
    if models.device(settings.model) == "cpu":
        os.environ["ACCELERATE_USE_CPU"] = "true"
    if world() > 1:
        from accelerate import PartialState

        PartialState(timeout=LONGEST_WAIT)


def train(stages: Sequence[str], folder: TrainingFolder, tell: Teller, stop: Stop) -> None:
    """Plays the stages that are not done yet. Raises Cudal1Error, StoppedError."""
    settings = folder.settings
    if rank() == 0:
        folder.need(ROOM, "a training")
        folder.state.id = folder.state.id or f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
        folder.state.attempt += 1
        folder.keep()
    together()
    if rank():
        folder = TrainingFolder(folder.path, settings, leader=False)
    with ExitStack() as stack:
        archive = open_archive(settings)
        stack.callback(archive.close)
        folder.state.archive = str(archive.path)
        if rank() == 0:
            tell(_run_started(folder))
            tell(TrainingPhase(stage="tasks", what="looking at the model", total=0))
            models.find_model(settings.model, folder, lambda what: None)
        together()
        start = models.find_model(settings.model, folder, lambda what: None)
        judging = judge_options(settings)
        listed = _listed(folder, archive, judging.device)
        referees = stack.enter_context(Referees(judging, settings.judge.lanes, tell))
        clock = time.monotonic()
        known = qualify(listed, folder.path / "tasks.jsonl", referees, tell, stop.check, weak=settings.tasks.weak)
        folder.spent("reading tasks", time.monotonic() - clock)
        names = {task.name: task.held_out for task in listed}
        work = Work(
            settings=settings,
            folder=folder,
            archive=archive,
            referees=referees,
            tell=tell,
            stop=stop,
            tasks={name: task for name, task in known.items() if not names[name]},
            held_out={name: task for name, task in known.items() if names[name]},
        )
        if rank() == 0:
            _announce(work, stages)
        _play(work, stages, start, judging)


def open_archive(settings: Settings) -> Archive:
    path = (Path(settings.archive) if settings.archive else archive_path()).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    return Archive(path)


def judge_options(settings: Settings) -> JudgeOptions:
    """Each process judges on its own GPU, where there are several and none was named."""
    judge, device = settings.judge, settings.judge.device
    if device == "auto":
        own = os.environ.get("LOCAL_RANK", "0")
        device = f"cuda:{own}" if torch.cuda.is_available() else "cpu"
    return JudgeOptions(
        device=device,
        timeout_s=judge.timeout,
        build_timeout_s=judge.build_timeout,
        timing_budget_s=judge.timing,
    )


def _play(work: Work, stages: Sequence[str], start: Start, judging: JudgeOptions) -> None:
    folder = work.folder
    _look(work, BEFORE, start, judging)
    for name, play in STAGES.items():
        done = folder.state.stages.get(name)
        if done is None and name in stages:
            work.stop.check()
            before, start = start, play(work, start)
            if rank() == 0:
                folder.state.stages[name] = start.to_json()
                folder.keep()
            together()
        elif done is not None:
            before = start = Start(**done)
        else:
            continue
        figures = _look(work, name, start, judging)
        if rank() == 0 and start != before:
            _register(work, name, start, figures)
    if rank() == 0:
        text = _report(work)
        folder.keep()
        work.tell(TrainingReported(path=str(folder.path / "report" / "report.md"), text=text))


def _look(work: Work, stage: str, start: Start, judging: JudgeOptions) -> StageFigures | None:
    """Held-out tasks, by all processes together."""
    if not work.settings.report.samples or not work.held_out:
        return None
    evaluate(work, stage, start, judging)
    together()
    if rank() == 0:
        work.folder.keep()
        _report(work)
    return stage_figures(stage, read_rows(work.folder.path / "report" / f"{stage}.jsonl"))


def _report(work: Work) -> str:
    folder = work.folder.sub("report")
    rows = {name: read_rows(folder / f"{name}.jsonl") for name in (BEFORE, *STAGES)}
    stages = [stage_figures(name, found) for name, found in rows.items() if found]
    gpus = world() if torch.cuda.is_available() else 0
    return write_report(
        work.folder, work.settings.model.name, stages, len(work.tasks), len(work.held_out), gpus
    )  # fmt: skip


def _listed(folder: TrainingFolder, archive: Archive, device: str) -> list[TrainTask]:
    """The split as it was written down, or made and written down now, before anything is trained."""
    path = folder.path / "split.json"
    if rank() == 0 and not path.exists():
        settings = folder.settings
        tasks = find_tasks(settings.tasks, archive, folder.path / "tasks", device, settings.seed)
        write_split(path, split(tasks, settings.tasks.held_out, settings.seed))
    together()
    return read_split(path)


def _announce(work: Work, stages: Sequence[str]) -> None:
    work.tell(
        TrainingStarted(
            folder=str(work.folder.path),
            model=work.settings.model.name,
            stages=tuple(stages),
            tasks=len(work.tasks),
            held_out=len(work.held_out),
        )
    )
    if not work.held_out and work.settings.report.samples:
        work.tell.trouble(
            "No task is held out",
            "All tasks are of one family, or none of another family could be judged; there will be no report.",
            "Add tasks of other families, for example --synthetic 20.",
        )


def _run_started(folder: TrainingFolder) -> RunStarted:
    return RunStarted(
        run=folder.state.id,
        reference=str(folder.path),
        policy=folder.settings.model.name,
        device=folder.settings.judge.device,
        rounds=0,
        group=folder.settings.rl.group,
        budget_s=None,
        folder=str(folder.path),
    )


def _register(work: Work, stage: str, start: Start, figures: StageFigures | None) -> None:
    """Lists the model; a list that cannot be written costs no training."""
    model = Trained(
        stage=stage,
        training=str(work.folder.path),
        model=work.settings.model.name,
        tasks=len(work.tasks),
        held_out=len(work.held_out),
        report=figures.to_json() if figures else {},
        **asdict(start),
    )
    try:
        register(model)
    except OSError as error:
        work.tell.trouble("The model could not be listed", str(error), f"It lies in {model.place}.")
