"""Identical code against itself: what the referee measures where the truth is 1.00.

    python benchmarks/equal_code.py [--device cpu] [--runs 10] [--timing 6]

Three small modules of different length, each judged RUNS times, every time by a new candidate process. Prints each
speedup, how many lie within 2 % of 1, and how often the interval covers 1.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.verdict import Verdict

MODULE = """
import torch
class {name}(torch.nn.Module):
    def forward(self, x):
        return {expression}
"""
INPUTS = """
def get_inputs():
    return [torch.randn({shape})]
def get_init_inputs():
    return []
"""
SUBJECTS = {
    "relu 64x512": ("torch.relu(x)", "64, 512"),
    "softmax 512x1024": ("torch.softmax(x, -1)", "512, 1024"),
    "matmul 768x768": ("x @ x", "768, 768"),
}


async def judged(expression: str, shape: str, options: argparse.Namespace, folder: Path) -> list[Verdict]:
    path = folder / "reference.py"
    path.write_text(MODULE.format(name="Model", expression=expression) + INPUTS.format(shape=shape))
    source = MODULE.format(name="ModelNew", expression=expression)
    judging = JudgeOptions(device=options.device, timing_budget_s=options.timing)
    async with Referee(judging) as referee:
        await referee.open(path)
        return [await referee.judge(f"c{i}", source, lambda event: None) for i in range(options.runs)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--timing", type=float, default=6.0, help="most seconds of timing a judgement")
    options = parser.parse_args()
    for name, (expression, shape) in SUBJECTS.items():
        with tempfile.TemporaryDirectory() as folder:
            verdicts = asyncio.run(judged(expression, shape, options, Path(folder)))
        speeds = [verdict.speedup or float("nan") for verdict in verdicts]
        covered = sum(
            v.speedup_interval is not None and v.speedup_interval[0] <= 1 <= v.speedup_interval[1] for v in verdicts
        )
        near = sum(abs(speed - 1) <= 0.02 for speed in speeds)
        print(
            f"{name:18s} {verdicts[0].reference_ms:8.3f} ms  {' '.join(f'{s:.2f}' for s in speeds)}"
            f"   within 2 %: {near} of {len(speeds)}, interval covers 1: {covered} of {len(speeds)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
