"""The contrastive prompt: the model sees good and less good code side by side with their measured speeds.

Its parts follow CUDA-L1 (arXiv 2507.14111, section 2.4.2): task, reference, earlier code with scores, the
three sections of the answer, requirements and restrictions.
"""

from __future__ import annotations

from collections.abc import Sequence

from cudal1_core.exemplars import eligible
from cudal1_core.policies.base import Judged
from cudal1_core.reference import Task

LONGEST_REASON = 300  # characters of why fed code was rejected

_ROLE = """\
You are an expert in GPU programming and PyTorch. Rewrite the module below so that it runs faster on {device}
and computes exactly the same function. The speedup is the reference's time divided by your code's time."""

_SECTIONS = """\
# Your answer

Write exactly three sections, each with this heading:

## Performance Analysis
{analysis}

## Algorithm Design
Describe in words what you will do: the kernels or operations, the memory traffic, and why it is faster.

## Code Implementation
One fenced Python block: a complete file that defines `class ModelNew(nn.Module)`."""

_CONTRAST = """\
Compare the code above. Which version is faster, and why? What holds the slower one back? Which techniques
look most promising, which are still unused, and where are the largest gains left?"""

_FIRST = """\
No earlier code exists yet. Where does the reference spend its time, and which techniques (operation fusion,
memory layout, algebraic simplification, CUDA graphs, a kernel of your own) promise the largest gains?"""

_RULES = """\
# Requirements

- `ModelNew` takes the same constructor arguments and the same inputs as `Model` and returns outputs of the
  same type, shape, dtype and device. A wrong result earns nothing, however fast it is.
- Parameters and buffers keep the reference's names and shapes, so that its weights load into `ModelNew`.
- The code builds and runs as one file. Inputs are not changed.

# Restrictions

- Every call does the full work on the inputs it is given. No result is kept from an earlier call.
- No shape, batch size or constant of the task is changed, and nothing is computed in a cheaper number format
  than the reference's.
- All work is finished, on the current stream, when `forward` returns. Clocks, streams and the judge are left
  alone: fresh inputs are judged by processes that this code cannot reach."""


def build_prompt(task: Task, exemplars: Sequence[Judged]) -> str:
    """The text for a language model. Without exemplars the reference stands alone at 1.00x."""
    parts = [_ROLE.format(device=task.device_name or task.device), _reference(task)]
    if exemplars:
        parts.append("# Earlier code, with its measured speed")
        parts += [_exemplar(number, judged) for number, judged in enumerate(exemplars, start=1)]
    analysis = _CONTRAST if exemplars else _FIRST
    parts.append(_SECTIONS.format(analysis=analysis))
    parts.append(_RULES)
    return "\n\n".join(parts) + "\n"


def _reference(task: Task) -> str:
    facts = [f"inputs: {', '.join(task.inputs) or 'none'}", f"outputs: {', '.join(task.outputs) or 'none'}"]
    name = "" if task.model == "Model" else f" The module is `{task.model}`; call yours `ModelNew`."
    return f"# The reference (1.00x)\n\n{'; '.join(facts)}.{name}\n\n{_fenced(task.source)}"


def _exemplar(number: int, judged: Judged) -> str:
    title = f": {judged.candidate.title}" if judged.candidate.title else ""
    return f"## Version {number}, {_score(judged)}{title}\n\n{_fenced(judged.candidate.source)}"


def _score(judged: Judged) -> str:
    """Only code that counts carries a speedup; other code is there because the person fed it."""
    verdict = judged.verdict
    if eligible(judged):
        return f"{verdict.speedup:.2f}x"
    if verdict.accepted:
        return "right, but the reference's weights do not load" if "not_drop_in" in verdict.labels else "not timed"
    why = " ".join((verdict.reason or "").split())[:LONGEST_REASON]
    return f"no score: {(verdict.category or verdict.verdict).replace('_', ' ')}" + (f" ({why})" if why else "")


def _fenced(source: str) -> str:
    mark = "```"
    while mark in source:
        mark += "`"
    return f"{mark}python\n{source.rstrip()}\n{mark}"
