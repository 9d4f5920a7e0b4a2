"""`cudal1-tui doctor --timing`: how well this machine measures, by the length of a kernel.

A chain of equal steps is judged against itself, where the truth is 1, and against itself with a tenth more steps whose
outcome nobody needs, where the truth is 10/11. Each length is timed by itself first, the quickest of two times.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from cudal1_core.errors import RefereeError
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions

from cudal1_tui.words import interval_text, ms_text, speedup_text

if TYPE_CHECKING:
    import argparse

    from cudal1_core.verdict import Verdict

LENGTHS_MS = (0.01, 0.1, 1.0, 10.0)  # that are aimed at; a chain cannot be shorter than its launches
STEPS = 10
MOST_ELEMENTS = 1 << 26  # of the input; a longer chain has more steps instead
SMALL = 64  # elements of the chains that tell how a machine's times grow
LARGE = {"cpu": 1 << 18, "cuda": 1 << 25}
SLOWER = STEPS / (STEPS + 1)

_MODULE = """
import torch
class {name}(torch.nn.Module):
    def forward(self, x):
        y = x
        for _ in range({steps}):
            y = torch.sin(y)
        for _ in range({extra}):
            torch.sin(x)
        return y
"""
_INPUTS = """
def get_inputs():
    return [torch.randn({elements})]
def get_init_inputs():
    return []
"""


@dataclass(frozen=True, slots=True)
class Length:
    """What was found at one length of kernels."""

    reference_ms: float
    half_interval: float  # relative, the median of all runs
    measured: tuple[float, ...]  # equal code: the middle of each interval
    covers: int  # intervals that hold 1
    slower: float | None  # the speedup found where 10/11 is true
    slower_interval: tuple[float, float] | None
    seen: bool  # the interval tells it from 1


def main(options: argparse.Namespace) -> int:
    """Exit status 0 where a tenth more work is seen at every length, 1 where it is not. Raises Cudal1Error."""
    found = asyncio.run(_measure(JudgeOptions(device=options.device), options.runs))
    if options.json:
        print(json.dumps({"lengths": [asdict(length) for length in found]}))
    else:
        print("\n".join(table(found)))
    return 0 if all(length.seen for length in found) else 1


def table(found: list[Length]) -> list[str]:
    """One line a length, under a heading."""
    lines = [f"{'kernel':>9}  {'± of a figure':>13}  {'interval holds 1':>16}  a tenth more work is seen as (0.91x)"]
    for length in found:
        holds = f"{length.covers} of {len(length.measured)}"
        seen = f"{speedup_text(length.slower)} {interval_text(length.slower_interval)}"
        lines.append(
            f"{ms_text(length.reference_ms):>9}  {length.half_interval:>13.1%}  {holds:>16}  "
            f"{'✓' if length.seen else '✗'} {seen}"
        )
    return lines


def chain(target_ms: float, small_ms: float, large_ms: float, large: int) -> tuple[int, int]:
    """(elements, times that each step is done) of a chain of about that length, from the times of two others.

    Those have SMALL and `large` elements.
    """
    each = max((large_ms - small_ms) / (large - SMALL), 1e-9)
    elements = max(SMALL, round((target_ms - small_ms) / each))
    times = -(-elements // MOST_ELEMENTS)
    return elements // times, times


async def _measure(options: JudgeOptions, runs: int) -> list[Length]:
    with tempfile.TemporaryDirectory(prefix="cudal1-doctor-") as name:
        path = Path(name, "chain.py")
        async with Referee(options) as referee:
            small_ms = await _quickest(referee, path, SMALL)
            assert referee.task is not None
            large = LARGE[referee.task.device.partition(":")[0]]
            large_ms = await _quickest(referee, path, large)
            chains = [chain(target, small_ms, large_ms, large) for target in LENGTHS_MS]
            found = []
            for elements, times in dict.fromkeys(chains):
                reference_ms = await _open(referee, path, elements, times)
                _tell(f"{ms_text(reference_ms)} a call: {runs} times the same code, then a tenth more work")
                found.append(await _at(referee, times, runs))
            return found


async def _quickest(referee: Referee, path: Path, elements: int) -> float:
    return min([await _open(referee, path, elements, 1) for _ in range(2)])


async def _open(referee: Referee, path: Path, elements: int, times: int) -> float:
    """Milliseconds a call of a chain by itself."""
    inputs = _INPUTS.format(elements=elements)
    path.write_text(_MODULE.format(name="Model", steps=STEPS * times, extra=0) + inputs, encoding="utf-8")
    await referee.open(path)
    assert referee.eager_ms is not None
    return referee.eager_ms


async def _at(referee: Referee, times: int, runs: int) -> Length:
    equal = [await _judged(referee, times, 0) for _ in range(runs)]
    slow = await _judged(referee, times, times)
    intervals = [verdict.speedup_interval or (0.0, 0.0) for verdict in equal]
    high = slow.speedup_interval[1] if slow.speedup_interval else 1.0
    return Length(
        reference_ms=median(verdict.reference_ms or 0.0 for verdict in equal),
        half_interval=median((high - low) / (high + low) for low, high in intervals),
        measured=tuple((low + high) / 2 for low, high in intervals),
        covers=sum(low <= 1 <= high for low, high in intervals),
        slower=slow.speedup,
        slower_interval=slow.speedup_interval,
        seen=high < 1,
    )


async def _judged(referee: Referee, times: int, extra: int) -> Verdict:
    source = _MODULE.format(name="ModelNew", steps=STEPS * times, extra=extra)
    verdict = await referee.judge("chain", source, lambda event: None)
    if not verdict.accepted or verdict.speedup_interval is None:
        raise RefereeError("code that is right was not accepted", f"{verdict.category}: {verdict.reason}")
    return verdict


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
