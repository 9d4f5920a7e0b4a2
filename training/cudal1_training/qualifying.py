"""Every task is read by the referee before anything is trained: what cannot be judged would teach nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cudal1_core.bench.figures import FLAWS
from cudal1_core.errors import UnjudgeableError, UsageError
from cudal1_core.events import Event, TrainingPhase, TrainingStepped, TroubleMet
from cudal1_core.reference import Task

from cudal1_training.folder import append_line, read_lines
from cudal1_training.referees import Referees
from cudal1_training.tasks import TrainTask


def qualify(
    tasks: Sequence[TrainTask],
    path: Path,
    referees: Referees,
    tell: Callable[[Event], None],
    check: Callable[[], None],
    *,
    weak: bool,
) -> dict[str, Task]:
    """Tasks by name. What was read before a kill is in `path`. Raises UsageError where none is left to train on."""
    known = {row["name"]: row for row in read_lines(path)}
    tell(TrainingPhase(stage="tasks", what="reading and qualifying tasks", total=len(tasks), done=len(known)))
    found: dict[str, Task] = {}
    refused: list[str] = []
    for number, task in enumerate(tasks, start=1):
        check()
        row = known.get(task.name)
        if row is None:
            row = _read(task, referees)
            append_line(path, row)
            tell(TrainingStepped(stage="tasks", step=number, total=len(tasks), metrics={}))
        if row["task"] is None:
            refused.append(f"{task.name}: {row['reason']}")
            continue
        read = Task.from_json(row["task"])
        flaws = [label for label in FLAWS if label in read.labels]
        if flaws and not weak:
            refused.append(f"{task.name}: {', '.join(flaws)} (a wrong program could pass)")
        else:
            found[task.name] = read
    if refused:
        more = f"; and {len(refused) - 3} more, see {path}" if len(refused) > 3 else ""
        tell(
            TroubleMet(
                title=f"{len(refused)} of {len(tasks)} tasks are left out", meaning="; ".join(refused[:3]) + more
            )
        )
    if not any(task.name in found for task in tasks if not task.held_out):
        raise UsageError(
            "No task is left to train on",
            "; ".join(refused[:3]),
            "Mend the references (`cudal1-tui bench FOLDER --examine` tells more), or set tasks.weak = true.",
        )
    return found


def _read(task: TrainTask, referees: Referees) -> dict[str, Any]:
    try:
        return {"name": task.name, "task": referees.open(Path(task.path)).to_json(), "reason": ""}
    except UnjudgeableError as error:
        return {"name": task.name, "task": None, "reason": error.title}
