"""Time from the start of `cudal1-tui FILE` to the reference read, the first verdict and the best one.

    python benchmarks/first_verdict.py [examples/diag_matmul.py] [--device cpu] [--runs 3] [-- further options]

Runs the command with --json as a person would, from a cold process, in a folder of its own.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cudal1_core import events
from cudal1_core.events import TaskDescribed, VerdictReached


def run(reference: Path, device: str, more: list[str]) -> dict[str, float]:
    """Seconds from the start of the process to each milestone, and the best speedup."""
    command = [sys.executable, "-m", "cudal1_tui", str(reference.resolve()), "--json", "--device", device, *more]
    found: dict[str, float] = {}
    best = 0.0
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            for line in process.stdout:
                now = time.monotonic() - start
                event = events.from_json(line.decode())
                if isinstance(event, TaskDescribed):
                    found["reference read"] = now
                if isinstance(event, VerdictReached):
                    found.setdefault("first verdict", now)
                    if event.verdict.accepted and (event.verdict.speedup or 0) > best:
                        best = event.verdict.speedup or 0.0
                        found["best verdict"] = now
        found["end"] = time.monotonic() - start
    return {**found, "best speedup": best}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference", nargs="?", type=Path, default=Path("examples/diag_matmul.py"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--runs", type=int, default=3)
    options, more = parser.parse_known_args()
    rows = [
        run(options.reference, options.device, [word for word in more if word != "--"]) for _ in range(options.runs)
    ]
    for name in rows[0]:
        values = [row[name] for row in rows if name in row]
        unit = "x" if name == "best speedup" else "s"
        print(f"{name:16s} median {statistics.median(values):7.2f} {unit}   of {', '.join(f'{v:.2f}' for v in values)}")


if __name__ == "__main__":
    main()
