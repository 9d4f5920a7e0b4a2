"""A queue of candidates, some of which call a compiler: how long it takes, and how long nothing is on the device.

    python benchmarks/building.py [--device cpu] [--plain 18] [--compiled 12] [--timing 2]

Plays one run with what calls a compiler built ahead and one without, in random order. All candidates are there at
once. The device is idle while none of them is checked or timed, from the first candidate's arrival to the last verdict.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cudal1_core.archive import Archive
from cudal1_core.events import CandidateWritten, Event, RunFinished, StageStarted, VerdictReached
from cudal1_core.paths import RunFolder
from cudal1_core.policies.replay import ReplayPolicy
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.rounds import Run, RunOptions

REFERENCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2
def get_inputs():
    return [torch.randn(1024, 4096)]
"""
PLAIN = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.clamp_min(x, 0).mul_(2)  # {number}
"""
CPU = """
torch::Tensor go(torch::Tensor x) {{ return torch::relu(x).mul_({number} - {number} + 2); }}
"""
CUDA = """
#include <torch/extension.h>
__global__ void kernel(const float* x, float* y, long n) {{
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaxf(x[i], 0.f) * ({number} - {number} + 2);
}}
torch::Tensor go(torch::Tensor x) {{
  auto y = torch::empty_like(x);
  kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}}
"""
COMPILED = """
import torch
from torch.utils.cpp_extension import load_inline
SOURCE = '''{source}'''
ext = load_inline(name="queued_{number}", functions=["go"], {how})
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.go(x)
"""


class OneByOne(Referee):
    """Builds nothing ahead."""

    def builds_ahead(self, source: str) -> bool:
        return False


@dataclass
class Watch:
    """What became of the queue, by the events of its run."""

    begin: float = 0.0
    end: float = 0.0
    busy: float = 0.0  # seconds in which one was checked or timed
    since: dict[str, float] = field(default_factory=dict)
    accepted: int = 0
    judged: int = 0

    def see(self, event: Event) -> None:
        if isinstance(event, CandidateWritten):
            self.begin = self.begin or event.at
        elif isinstance(event, StageStarted) and event.stage in ("checking", "timing"):
            self.since.setdefault(event.candidate, event.at)
        elif isinstance(event, VerdictReached):
            self.end = event.at
            self.busy += event.at - self.since.get(event.candidate, event.at)
            self.judged += 1
            self.accepted += event.verdict.accepted

    def told(self) -> str:
        took = self.end - self.begin
        idle = 1 - self.busy / took
        return (
            f"{took:.1f} s for {self.judged} candidates ({self.accepted} accepted), "
            f"{self.judged / took * 60:.1f} a minute, idle {idle:.0%}"
        )


def candidate(number: int, compiled: bool, device: str) -> str:
    if not compiled:
        return PLAIN.format(number=number)
    cpu = device == "cpu"
    source = (CPU if cpu else CUDA).format(number=number)
    how = "cpp_sources=SOURCE" if cpu else 'cpp_sources="torch::Tensor go(torch::Tensor x);", cuda_sources=SOURCE'
    return COMPILED.format(source=source, number=number, how=how)


async def played(make: Callable[[JudgeOptions], Referee], folder: Path, options: argparse.Namespace) -> Watch:
    judging = JudgeOptions(device=options.device, timing_budget_s=options.timing)
    count = options.plain + options.compiled
    chosen = RunOptions(rounds=1, group=count, judge=judging)
    policy = ReplayPolicy(folder / "candidates")
    run = Run(folder / "reference.py", chosen, make(judging), policy, Archive(), RunFolder("queue", None))
    watch = Watch()
    async for event in run.events():
        watch.see(event)
        if isinstance(event, RunFinished):
            break
    await run.close()
    if run.error is not None:
        raise run.error
    return watch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--plain", type=int, default=18)
    parser.add_argument("--compiled", type=int, default=12)
    parser.add_argument("--timing", type=float, default=2.0, help="most seconds of timing a judgement")
    options = parser.parse_args()
    ways: list[tuple[str, type[Referee]]] = [("one by one", OneByOne), ("built ahead", Referee)]
    random.shuffle(ways)
    for name, make in ways:
        with tempfile.TemporaryDirectory(prefix="building-") as place:
            folder = Path(place)
            (folder / "reference.py").write_text(REFERENCE, "utf-8")
            (folder / "candidates").mkdir()
            numbers = list(range(options.plain + options.compiled))
            compiled = set(random.Random(0).sample(numbers, options.compiled))  # the same queue for both
            for number in numbers:
                text = candidate(number, number in compiled, options.device)
                (folder / "candidates" / f"{number:02d}.py").write_text(text, "utf-8")
            begin = time.monotonic()
            watch = asyncio.run(played(make, folder, options))
        print(f"{name:12s} {watch.told()}; {time.monotonic() - begin:.1f} s with the start", flush=True)


if __name__ == "__main__":
    main()
