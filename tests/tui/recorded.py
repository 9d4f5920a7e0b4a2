"""A run made by hand: ten candidates of every kind, and a run handle that plays it under a test's control."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cudal1_core.candidate import Candidate
from cudal1_core.events import (
    BaselineTimed,
    CandidateWritten,
    CheckFinished,
    Decision,
    DecisionMade,
    Event,
    PairsMeasured,
    RoundFinished,
    RoundStarted,
    RunFinished,
    RunStarted,
    StageStarted,
    TaskDescribed,
    TimingSampled,
    TokenArrived,
    VerdictReached,
)
from cudal1_core.reference import Task
from cudal1_core.verdict import Check, Verdict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from pathlib import Path

START = 1_800_000_000.0  # wall-clock seconds at which the recording begins
HOSTILE = "[bold red]not markup[/] \x1b[31mred\x1b[0m \x1b]0;title\x07 \x08\x7f 日本語 e\u0301 \u202e [/nothing]"

REFERENCE = '''"""Row-wise softmax with a scale and a bias, as in attention."""

import torch
from torch import nn


class Model(nn.Module):
    """Scales, shifts, and takes the softmax of each row."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * self.scale + self.bias
        shifted = x - x.max(dim=-1, keepdim=True).values
        exponentials = shifted.exp()
        return exponentials / exponentials.sum(dim=-1, keepdim=True)


def get_inputs():
    return [torch.randn(4096, 8192)]


def get_init_inputs():
    return [8192]
'''

FAST = '''import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def softmax_kernel(x_ptr, scale_ptr, bias_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    """One program a row: one read, one write."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=-float("inf"))
    scale = tl.load(scale_ptr + offsets, mask=inside, other=1.0)
    bias = tl.load(bias_ptr + offsets, mask=inside, other=0.0)
    x = x * scale + bias
    x = tl.where(inside, x, -float("inf"))
    exponentials = tl.exp(x - tl.max(x, axis=0))
    y = exponentials / tl.sum(exponentials, axis=0)
    tl.store(y_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        rows, columns = x.shape
        block = triton.next_power_of_2(columns)
        softmax_kernel[(rows,)](x, self.scale, self.bias, y, columns, BLOCK=block)
        return y
'''

WRITING = """## Performance analysis

c03 reads the row once and keeps it in registers; c01 reads it three times.

## Code

```python
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.soft"""

CHECKS = (
    Check("builds", True, "imported and constructed in 1.8 s"),
    Check("form", True, "float32[4096, 8192], contiguous, as the reference"),
    Check("own_inputs", True, "4 draws of get_inputs, largest error 2.4e-07 of scale"),
    Check("fresh_inputs", True, "24 matched draws, largest error 3.1e-07 of scale"),
    Check("moved_pointers", True, "new content at the same address, and the same at new ones"),
    Check("earlier_outputs", True, "kept after later calls"),
    Check("weights", True, "perturbed through load_state_dict"),
)
VERSIONS = {"python": "3.11.7", "torch": "2.13.0", "cuda": "12.8"}
DEVICE = {"name": "NVIDIA H200", "kind": "cuda"}


def task(path: str) -> Task:
    return Task(
        path=path,
        model="Model",
        source=REFERENCE,
        source_hash="5f0c",
        device="cuda:0",
        device_name="NVIDIA H200",
        dtype="float32",
        inputs=("float32[4096, 8192]",),
        outputs=("float32[4096, 8192]",),
        parameters=16384,
    )


def candidate(id: str, round: int, title: str, source: str = FAST, **more: object) -> Candidate:
    text = f"## Design\n\n{title}\n\n```python\n{source}```\n"
    return Candidate(
        id=id,
        round=round,
        policy="playbook",
        source=source,
        text=text,
        title=title,
        **more,  # type: ignore[arg-type]
    )


def accepted(speedup: float, spread: float, *labels: str, win: str = "kernel") -> Verdict:
    return Verdict(
        verdict="accepted",
        speedup=speedup,
        speedup_interval=(round(speedup - spread, 2), round(speedup + spread, 2)),
        reference_ms=0.412,
        candidate_ms=0.412 / speedup,
        win=win,
        baselines={"eager": 0.412, "compile": 0.298},
        checks=CHECKS,
        labels=labels,
        device=DEVICE,
        versions=VERSIONS,
    )


def rejected(category: str, reason: str, *checks: Check) -> Verdict:
    return Verdict(
        verdict="rejected",
        category=category,
        reason=reason,
        checks=checks,
        device=DEVICE,
        versions=VERSIONS,
    )


def samples(id: str, speedup: float, blocks: int) -> list[Event]:
    """Paired blocks that wobble around a speedup."""
    told: list[Event] = []
    for block in range(1, blocks + 1):
        wobble = 1 + 0.02 * ((block * 7) % 5 - 2) / 2
        spread = 0.2 / block**0.5
        told.append(
            TimingSampled(
                at=START,
                candidate=id,
                reference_ms=0.412,
                candidate_ms=0.412 / (speedup * wobble),
                speedup=speedup,
                interval=(round(speedup - spread, 3), round(speedup + spread, 3)),
                blocks=block,
            )
        )
    return told


def judged(written: Candidate, verdict: Verdict, seconds: float = 6.4) -> list[Event]:
    """A candidate from its text to its verdict."""
    id = written.id
    told: list[Event] = [
        TokenArrived(at=START, candidate=id, text=written.text),
        CandidateWritten(at=START, candidate=written),
        StageStarted(at=START, candidate=id, stage="queued"),
        StageStarted(at=START, candidate=id, stage="building"),
    ]
    if verdict.checks:
        told.append(StageStarted(at=START, candidate=id, stage="checking"))
        told += [CheckFinished(at=START, candidate=id, check=check) for check in verdict.checks]
    if verdict.speedup is not None:
        told.append(StageStarted(at=START, candidate=id, stage="timing"))
        told += samples(id, verdict.speedup, 24)
        before, after = ({"gpu": {"sm_mhz": mhz}} for mhz in (1980, 1965))
        told.append(PairsMeasured(at=START, candidate=id, samples={}, seeds={}, before=before, after=after))
    told.append(VerdictReached(at=START, candidate=id, verdict=verdict, seconds=seconds))
    return told


def opening(path: str) -> list[Event]:
    """Up to the first round."""
    return [
        RunStarted(
            at=START,
            run="20261130-221544-7f3a",
            reference=path,
            policy="playbook",
            device="cuda:0",
            rounds=3,
            group=5,
            budget_s=None,
            folder="",
        ),
        TaskDescribed(at=START + 2, task=task(path)),
        BaselineTimed(at=START + 3, baseline="eager", ms=0.412),
        BaselineTimed(at=START + 3, baseline="compile", ms=0.298),
    ]


def first_round() -> list[Event]:
    wrong = Check("fresh_inputs", False, "3 of 24 draws differ; largest error 0.41 of scale at [17, 8190]")
    build = "SyntaxError: '(' was never closed (candidate.py, line 41)"
    return [
        RoundStarted(at=START + 4, round=1, exemplars=()),
        *judged(
            candidate("c01", 1, "algebraic simplification"),
            accepted(1.12, 0.02, "no_authored_kernel", win="torch_level"),
        ),
        *judged(
            candidate("c02", 1, "memory layout"),
            accepted(0.93, 0.01, "no_authored_kernel", win="torch_level"),
        ),
        *judged(candidate("c03", 1, "operation fusion in Triton, one pass a row"), accepted(2.31, 0.03)),
        *judged(candidate("c04", 1, "operation fusion", FAST[:300]), rejected("build_failed", build), 0.9),
        *judged(
            candidate("c05", 1, "warp-level reduction"),
            rejected("wrong_result", "Differs from the float64 truth on fresh inputs.", *CHECKS[:3], wrong),
        ),
        RoundFinished(at=START + 60, round=1, accepted=3, rejected=2, best="c03", best_speedup=2.31),
    ]


def second_round() -> list[Event]:
    """Ends in the middle: one candidate is timed, one waits, one is being written."""
    tamper = "The candidate's own clock disagrees with the host's by a factor of 40."
    after = ("c01", "c03")
    return [
        RoundStarted(at=START + 61, round=2, exemplars=after),
        *judged(
            candidate("c06", 2, "persistent kernel", exemplars=after),
            rejected("timed_out", "forward took longer than 30 s.", *CHECKS[:2]),
            31.2,
        ),
        *judged(
            candidate("c07", 2, HOSTILE, FAST + f"\n# {HOSTILE}\n"),
            rejected("dishonest", tamper, *CHECKS[:2]),
        ),
        TokenArrived(at=START + 80, candidate="c08", text="import torch\n"),
        CandidateWritten(
            at=START + 81,
            candidate=candidate("c08", 2, "two rows a program, half the launches", exemplars=after),
        ),
        StageStarted(at=START + 81, candidate="c08", stage="checking"),
        *(CheckFinished(at=START + 82, candidate="c08", check=check) for check in CHECKS),
        StageStarted(at=START + 83, candidate="c08", stage="timing"),
        *samples("c08", 2.05, 9),
        CandidateWritten(at=START + 84, candidate=candidate("c09", 2, "CUDA graph of the eager path")),
        StageStarted(at=START + 84, candidate="c09", stage="queued"),
        TokenArrived(at=START + 85, candidate="c10", text=WRITING),
    ]


def rest() -> list[Event]:
    """From there to the end of the run."""
    labels = ("no_authored_kernel", "throttled")
    return [
        VerdictReached(at=START + 90, candidate="c08", verdict=accepted(2.05, 0.02), seconds=9.1),
        VerdictReached(at=START + 95, candidate="c09", verdict=accepted(1.02, 0.03, *labels, win="graph"), seconds=7.7),
        *judged(
            candidate("c10", 2, "library softmax, in place"),
            accepted(2.6, 0.04, "not_drop_in", win="library"),
        ),
        RoundFinished(at=START + 100, round=2, accepted=3, rejected=2, best="c03", best_speedup=2.31),
        RunFinished(at=START + 100, reason="done", best="c03", best_speedup=2.31),
    ]


def middle(path: str) -> list[Event]:
    """Everything up to the middle of the second round: ten candidates."""
    return [*opening(path), *first_round(), *second_round()]


class ScriptedRun:
    """A run that tells what a test tells it to tell, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []
        self.paused = False
        self.stopped = False
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()

    def tell(self, events: Iterable[Event]) -> None:
        for event in events:
            self._queue.put_nowait(event)

    def end(self) -> None:
        """The stream of events ends."""
        self._queue.put_nowait(None)

    @property
    def told_all(self) -> bool:
        return self._queue.empty()

    async def events(self) -> AsyncIterator[Event]:
        while (event := await self._queue.get()) is not None:
            yield event

    def pause(self) -> None:
        self.paused = True
        self.asked.append(("pause",))

    def resume(self) -> None:
        self.paused = False
        self.asked.append(("resume",))

    def decide(self, candidate_id: str, decision: Decision, path: Path | None = None) -> None:
        self.asked.append((candidate_id, decision, path))
        self.tell([DecisionMade(at=START, candidate=candidate_id, decision=decision, path=str(path) if path else None)])

    def extend(self, rounds: int) -> None:
        self.asked.append(("extend", rounds))

    def update(self) -> None:
        self.asked.append(("update",))

    async def stop(self) -> None:
        self.stopped = True
        self.end()
