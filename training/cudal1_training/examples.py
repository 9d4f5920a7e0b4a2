"""Examples for fine-tuning: a prompt and an answer that the referee accepted, each program once."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cudal1_core.archive import Archive
from cudal1_core.candidate import source_hash
from cudal1_core.exemplars import eligible
from cudal1_core.policies.base import Judged
from cudal1_core.prompt import build_prompt
from cudal1_core.reference import Task

LATEST = 10_000  # candidates of a task that are looked at

HEADING = "## Code Implementation"


@dataclass(frozen=True, slots=True)
class Example:
    task: str  # name
    prompt: str
    answer: str
    speedup: float
    policy: str

    def row(self) -> dict[str, Any]:
        """As TRL takes it: the loss is on the completion alone."""
        return {
            "prompt": [{"role": "user", "content": self.prompt}],
            "completion": [{"role": "assistant", "content": self.answer}],
        }


def from_archive(
    archive: Archive, tasks: dict[str, Task], most: int, wanted: Callable[[Judged], bool] = lambda judged: True
) -> list[Example]:
    """The `most` fastest programs of each task that were accepted, load the weights, and were not dismissed."""
    found = []
    for name in sorted(tasks):
        judged = [one for one in archive.earlier(tasks[name], "", LATEST) if wanted(one)]
        found += of_task(name, tasks[name], judged, most)
    return found


def of_task(name: str, task: Task, judged: Iterable[Judged], most: int) -> list[Example]:
    """Programs that differ only in layout, comments and docstrings count as one; its fastest stands for it."""
    ranked = sorted((one for one in judged if eligible(one)), key=lambda one: -(one.verdict.speedup or 0.0))
    seen: set[str] = set()
    kept: list[Judged] = []
    for one in ranked:
        key = program_hash(one.candidate.source)
        if key not in seen and len(kept) < most:
            seen.add(key)
            kept.append(one)
    prompt = build_prompt(task, ())
    return [
        Example(name, prompt, answer_of(one), one.verdict.speedup or 0.0, one.candidate.policy) for one in kept
    ]  # fmt: skip


def answer_of(judged: Judged) -> str:
    """The whole answer, or the code in its section where nothing else was written."""
    text = judged.candidate.text
    if HEADING in text:
        return text
    mark = "```"
    while mark in judged.candidate.source:
        mark += "`"
    return f"{HEADING}\n{mark}python\n{judged.candidate.source.rstrip()}\n{mark}\n"


def program_hash(source: str) -> str:
    """The same for programs that Python reads as the same, docstrings aside."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source_hash(" ".join(source.split()))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and len(node.body) > 1:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                del node.body[0]
    return source_hash(ast.dump(tree))


def fitting(examples: Sequence[Example], count: Callable[[Example], int], longest: int) -> list[Example]:
    """Those whose tokens are at most `longest`: a cut answer would teach to break off."""
    return [example for example in examples if count(example) <= longest]
