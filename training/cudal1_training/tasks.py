"""The tasks of a training: where they come from, and which of them are never trained on."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cudal1_core.archive import Archive
from cudal1_core.bench.suites import read_suite
from cudal1_core.candidate import source_hash
from cudal1_core.errors import UsageError

from cudal1_training import synthetic
from cudal1_training.families import family_of
from cudal1_training.settings import TaskSettings

FROM_ARCHIVE = "archive"  # in place of a path: what was ever opened in the workbench


@dataclass(frozen=True, slots=True)
class TrainTask:
    """One reference as a file."""

    name: str
    family: str
    path: str  # absolute
    source_hash: str
    held_out: bool = False


def find_tasks(settings: TaskSettings, archive: Archive, folder: Path, device: str, seed: int) -> list[TrainTask]:
    """What the settings name, each source once; references without a file of their own go to `folder`.

    Raises UsageError where there is none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found: list[tuple[str, str, Path | None, str]] = []  # name, source, path, family or ""
    if settings.path == FROM_ARCHIVE:
        found += [(Path(task.path).stem, task.source, _same(task.path, task.source), "") for task in archive.tasks()]
    elif settings.path:
        subjects = read_suite(Path(settings.path))
        found += [(subject.task, subject.text, subject.path, "") for subject in subjects]
    if settings.synthetic:
        small = settings.shapes == "small" or (settings.shapes == "auto" and device == "cpu")
        found += [
            (one.name, one.source, None, one.family) for one in synthetic.generate(settings.synthetic, seed, small)
        ]
    twins = {family_of(source): family for _, source, _, family in found if family}  # of a template's tasks
    tasks: dict[str, TrainTask] = {}
    names: set[str] = set()
    for name, source, path, family in found:
        digest = source_hash(source)
        if digest in tasks:
            continue
        unique = name if name not in names else f"{name}-{digest[:6]}"
        names.add(unique)
        place = path or _written(folder, unique, source)
        kind = family or family_of(source)
        tasks[digest] = TrainTask(unique, twins.get(kind, kind), str(place.absolute()), digest)
    if not tasks:
        raise UsageError(
            "There is no task to train on",
            "Tasks are references: files with class Model, get_inputs and get_init_inputs.",
            "Add --tasks with a folder or a KernelBench checkout, --tasks archive, or --synthetic 40.",
        )
    chosen = list(tasks.values())
    if settings.limit:
        chosen = sorted(random.Random(f"tasks {seed}").sample(chosen, min(settings.limit, len(chosen))), key=_by_name)
    return chosen


def split(tasks: Sequence[TrainTask], share: float, seed: int) -> list[TrainTask]:
    """Whole families, in a random order, are held out until their tasks are at least this share of all.

    A single family cannot be split; one family at least is always trained on.
    """
    families = sorted({task.family for task in tasks})
    random.Random(f"split {seed}").shuffle(families)
    counts = {family: sum(task.family == family for task in tasks) for family in families}
    held: set[str] = set()
    for family in families[:-1]:
        taken = sum(counts[name] for name in held)
        if taken >= share * len(tasks):
            break
        if not held or (taken + counts[family]) <= 2 * share * len(tasks):  # a huge family is no held-out set
            held.add(family)
    return [TrainTask(task.name, task.family, task.path, task.source_hash, task.family in held) for task in tasks]


def write_split(path: Path, tasks: Sequence[TrainTask]) -> None:
    path.write_text(json.dumps([asdict(task) for task in tasks], indent=1) + "\n", "utf-8")


def read_split(path: Path) -> list[TrainTask]:
    """Raises UsageError where a reference has changed since."""
    tasks = [TrainTask(**row) for row in json.loads(path.read_text("utf-8"))]
    for task in tasks:
        file = Path(task.path)
        if not file.is_file() or source_hash(_text(file)) != task.source_hash:
            raise UsageError(
                f"{file} is gone or has changed since this training began",
                "What is trained on and what is held out was fixed then.",
                "Put the file back, or begin a new training with another --out.",
            )
    return tasks


def _written(folder: Path, name: str, source: str) -> Path:
    path = folder / ("".join(c if c.isalnum() or c in "-_" else "_" for c in name) + ".py")
    path.write_bytes(source.encode("utf-8", "surrogateescape"))
    return path


def _same(path: str, source: str) -> Path | None:
    """The user's own file while it is unchanged, since modules beside it may be imported."""
    file = Path(path)
    return file if file.is_file() and source_hash(_text(file)) == source_hash(source) else None


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


def _by_name(task: TrainTask) -> str:
    return task.name
