"""Every task is read by the referee before anything is trained: what cannot be judged would teach nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cudal1_core.bench.figures import FLAWS
from cudal1_core.errors import UnjudgeableError, UsageError
from cudal1_core.reference import Task

from cudal1_training.folder import append_line, read_lines
from cudal1_training.referees import Referees
from cudal1_training.tasks import TrainTask
from cudal1_training.telling import Teller
from cudal1_training.work import mine, together, world


def qualify(
    tasks: Sequence[TrainTask],
    path: Path,
    referees: Referees,
    tell: Teller,
    check: Callable[[], None],
    *,
    weak: bool,
) -> dict[str, Task]:
    """Tasks by name. What was read before a kill is in `path`. Raises UsageError where none is left to train on."""
    known = {row["name"] for row in read_lines(path)}
    together()
    steps = tell.phase("tasks", "reading and qualifying tasks", len(tasks), len(known), share=world())
    for task in mine([task for task in tasks if task.name not in known]):
        check()
        append_line(path, _read(task, referees))
        steps.step()
    together()
    found, refused = _usable(read_lines(path), weak=weak)
    if refused and tell.leads:
        more = f"; and {len(refused) - 3} more, see {path}" if len(refused) > 3 else ""
        tell.trouble(f"{len(refused)} of {len(tasks)} tasks are left out", "; ".join(refused[:3]) + more)
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


def _usable(rows: Sequence[dict[str, Any]], *, weak: bool) -> tuple[dict[str, Task], list[str]]:
    """Tasks by name, and why others are left out."""
    found: dict[str, Task] = {}
    refused: list[str] = []
    for row in sorted(rows, key=lambda row: str(row["name"])):
        if row["task"] is None:
            refused.append(f"{row['name']}: {row['reason']}")
            continue
        task = Task.from_json(row["task"])
        flaws = [label for label in FLAWS if label in task.labels]
        if flaws and not weak:
            refused.append(f"{row['name']}: {', '.join(flaws)} (a wrong program could pass)")
        else:
            found[row["name"]] = task
    return found, refused
