"""Suites: a KernelBench checkout, the CUDA-L1 release, or any folder of references, as subjects to judge.

Nothing here runs the code it reads.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cudal1_core.errors import UsageError
from cudal1_core.extract import extract_code
from cudal1_core.sources import bare, natural, read_rows

RELEASED = "release"  # name of a candidate that came with its reference in a row of JSON Lines

# The authors' own speedups in the CUDA-L1 release, by what they were measured against.
CLAIMS = {
    "score_default": "eager",
    "score_torch_compile_default": "compile",
    "score_torch_compile_reduce_overhead": "compile-reduce-overhead",
    "score_cuda_graph": "cuda-graph",
    "score_cudnn": "cudnn",
}

_PROBLEM = re.compile(r"(\d+)_(.+)")
_LEVEL = re.compile(r"level(\d+)")
_TASK = re.compile(r"[Ll]?(\d+)/(\d+)")


@dataclass(frozen=True, slots=True)
class Source:
    """A candidate to judge; an empty text is one that holds no code."""

    name: str  # unique in its subject
    text: str
    examine: bool = False  # there is no code, but the reference is looked at for flaws


@dataclass(frozen=True, slots=True)
class Subject:
    """One task of a suite. References from JSON Lines have no path and lie in `text` alone."""

    task: str  # "L2/96", or the name of the reference's file
    text: str
    path: Path | None = None
    level: int | None = None
    number: int | None = None  # within the level
    title: str = ""
    candidates: tuple[Source, ...] = ()
    claimed: dict[str, float] = field(default_factory=dict)  # baseline -> the authors' own speedup

    @property
    def file_name(self) -> str:
        return self.path.name if self.path else re.sub(r"\W", "_", self.task) + ".py"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which tasks of a suite are wanted."""

    levels: tuple[int, ...] = ()  # empty: all
    ids: tuple[str, ...] = ()  # "L1/12", "1/12" or the name of a file; empty: all
    shuffle: int | None = None  # seed of a random order; None: the suite's
    limit: int | None = None
    share: tuple[int, int] = (1, 1)  # the k-th of n parts that together are the whole, spread over it


def read_suite(path: Path) -> tuple[Subject, ...]:
    """The tasks of a suite, in order, with the candidates that came along. Raises UsageError."""
    if not path.exists():
        raise UsageError(f"{path}: there is no such suite", SUITES)
    if path.is_file():
        subjects = _rows(path) if path.suffix in (".jsonl", ".ndjson") else [_file(path)]
    else:
        subjects = _levels(path) or [_file(file) for file in sorted(path.glob("*.py"), key=natural) if _refers(file)]
    if not subjects:
        raise UsageError(f"{path} holds no reference", SUITES)
    counts: dict[str, int] = {}
    for subject in subjects:
        counts[subject.task] = counts.get(subject.task, 0) + 1
    if twice := [task for task, count in counts.items() if count > 1]:
        raise UsageError(f"{path} names {twice[0]} more than once", "Each task stands once in a suite.")
    return tuple(subjects)


SUITES = (
    "A suite is a KernelBench checkout, JSON Lines with ref_code (as the CUDA-L1 release), "
    "a folder of references, or one reference."
)


def choose(subjects: Sequence[Subject], choice: Choice) -> tuple[Subject, ...]:
    """Raises UsageError for an id that the suite does not hold, and where nothing is left."""
    wanted = [_task_name(id) for id in choice.ids]
    known = {subject.task for subject in subjects}
    if missing := [id for id in wanted if id not in known]:
        raise UsageError(f"The suite has no task {missing[0]}", f"Its first is {subjects[0].task}.")
    left = [
        subject
        for subject in subjects
        if (not choice.levels or subject.level in choice.levels) and (not wanted or subject.task in wanted)
    ]
    if choice.shuffle is not None:
        random.Random(choice.shuffle).shuffle(left)
    part, parts = choice.share
    left = left[part - 1 :: parts][: choice.limit]
    if not left:
        raise UsageError("No task is left to judge", "The filters leave nothing of the suite.")
    return tuple(left)


def with_candidates(subjects: Sequence[Subject], path: Path) -> tuple[Subject, ...]:
    """The subjects with the candidates found at `path` in place of their own. Raises UsageError.

    JSON Lines name their task (`level_id` and `task_id`, or `task`) or hold its `ref_code`. A folder holds
    `L1/12.py`, `level1/12_*.py`, `level_1_problem_12_*.py`, `<reference>.py`, `<reference>_*.py` or `<reference>/*.py`.
    """
    if not path.exists():
        raise UsageError(f"--candidates {path}: no such file or folder")
    if path.is_dir():
        found = tuple(replace(subject, candidates=_beneath(path, subject), claimed={}) for subject in subjects)
    elif path.suffix in (".jsonl", ".ndjson"):
        found = _from_rows(subjects, path)
    else:
        if len(subjects) != 1:
            raise UsageError(f"--candidates {path} is one file for {len(subjects)} tasks", "Choose one with --ids.")
        found = (replace(subjects[0], candidates=(Source(path.stem, _text(path)),), claimed={}),)
    if not any(subject.candidates for subject in found):
        raise UsageError(f"No candidate in {path} is for a task of this suite", str(with_candidates.__doc__).strip())
    return found


def examined(subjects: Sequence[Subject]) -> tuple[Subject, ...]:
    """The same with every reference looked at, also where nobody has code for it."""
    return tuple(
        replace(
            subject,
            candidates=tuple(replace(source, examine=not source.text.strip()) for source in subject.candidates)
            or (Source("", "", examine=True),),
        )
        for subject in subjects
    )


def _levels(path: Path) -> list[Subject]:
    """The problems of a KernelBench checkout; none where it is no such thing."""
    top = path / "KernelBench" if (path / "KernelBench").is_dir() else path
    levels = sorted((int(match[1]), folder) for folder in top.iterdir() if (match := _LEVEL.fullmatch(folder.name)))
    if not levels and (match := _LEVEL.fullmatch(path.resolve().name)):
        levels = [(int(match[1]), path)]
    subjects = []
    for level, folder in levels:
        for file in sorted(folder.glob("*.py"), key=natural):
            if match := _PROBLEM.fullmatch(file.stem):
                number, title = int(match[1]), match[2].strip("_").replace("_", " ")
                task = f"L{level}/{number}"
                subjects.append(Subject(task, _text(file), file, level, number, title))
    return subjects


def _file(path: Path) -> Subject:
    candidates = (*path.parent.glob(f"{_literal(path.stem)}_optimized*.py"), *(path.parent / path.stem).glob("*.py"))
    sources = tuple(Source(file.stem, _text(file)) for file in sorted(candidates, key=natural))
    return Subject(path.stem, _text(path), path, candidates=sources)


def _refers(path: Path) -> bool:
    """Whether the file looks like a reference; accepted candidates often lie beside theirs."""
    return re.search(r"^(?:def\s+get_inputs\b|get_inputs\s*=)", _text(path), re.MULTILINE) is not None and not (
        re.search(r"_optimized[^/]*$", path.stem)
    )


def _rows(path: Path) -> list[Subject]:
    subjects = []
    for row, place in _objects(path):
        if not isinstance(row.get("ref_code"), str):
            raise UsageError(f"{place}: the row has no ref_code", SUITES)
        subjects.append(_from_row(row, place))
    return subjects


def _from_row(row: dict[str, Any], place: str) -> Subject:
    level, number = row.get("level_id"), row.get("task_id")
    named = isinstance(level, int) and isinstance(number, int)
    task = f"L{level}/{number}" if named else str(row.get("task") or place)
    claimed = {name: float(row[key]) for key, name in CLAIMS.items() if isinstance(row.get(key), int | float)}
    candidates = (Source(RELEASED, extract_code(row["custom_code"] or "")),) if "custom_code" in row else ()
    return Subject(
        task,
        row["ref_code"],
        level=level if named else None,
        number=number if named else None,
        title=str(row.get("title") or ""),
        candidates=candidates,
        claimed=claimed,
    )


def _objects(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Each row with its place, which names what has no name of its own."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read", error.strerror or str(error)) from error
    return ((row, f"{path.stem}:{number}") for number, row in read_rows(content, path, UsageError))


def _from_rows(subjects: Sequence[Subject], path: Path) -> tuple[Subject, ...]:
    by_task: dict[str, list[Source]] = {}
    claims: dict[str, dict[str, float]] = {}
    references = {bare(subject.text): subject.task for subject in subjects}
    for row, place in _objects(path):
        level, number = row.get("level_id"), row.get("task_id")
        task = f"L{level}/{number}" if isinstance(level, int) and isinstance(number, int) else row.get("task")
        if task is None and isinstance(row.get("ref_code"), str):
            task = references.get(bare(row["ref_code"]))
        text = next((row[key] for key in ("custom_code", "source", "text") if isinstance(row.get(key), str)), "")
        if isinstance(task, str):
            name = str(row.get("candidate") or row.get("id") or place)
            by_task.setdefault(task, []).append(Source(name, extract_code(text)))
            claims[task] = {word: float(row[key]) for key, word in CLAIMS.items() if isinstance(row.get(key), float)}
    return tuple(
        replace(
            subject,
            candidates=tuple(by_task.get(subject.task, ())),
            claimed=claims.get(subject.task, {}) if len(by_task.get(subject.task, ())) == 1 else {},
        )
        for subject in subjects
    )


def _beneath(folder: Path, subject: Subject) -> tuple[Source, ...]:
    patterns = []
    if subject.level is not None:
        level, number = subject.level, subject.number
        for level_folder in (f"L{level}", f"level{level}"):
            patterns += [
                f"{level_folder}/{number}.py",
                f"{level_folder}/{number}_*.py",
                f"{level_folder}/{number}/*.py",
            ]
        patterns.append(f"level_{level}_problem_{number}_*.py")
    if subject.path is not None:
        stem = _literal(subject.path.stem)
        patterns += [f"{stem}.py", f"{stem}_*.py", f"{stem}/*.py"]
    own = subject.path.resolve() if subject.path else None
    files = {file.resolve(): file for pattern in patterns for file in folder.glob(pattern) if file.resolve() != own}
    found = sorted(files.values(), key=natural)
    return tuple(Source(str(file.relative_to(folder).with_suffix("")), _text(file)) for file in found)


def _task_name(id: str) -> str:
    match = _TASK.fullmatch(id)
    return f"L{match[1]}/{match[2]}" if match else id.removesuffix(".py")


def _text(path: Path) -> str:
    """Bytes that are not UTF-8 stay in place as surrogates: judging them is the referee's business."""
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise UsageError(f"{path} cannot be read", error.strerror or str(error)) from error


def _literal(name: str) -> str:
    """The name as a glob pattern that matches nothing else."""
    return re.sub(r"([*?[])", r"[\1]", name)
