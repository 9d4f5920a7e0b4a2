"""What a watch costs while nothing happens, and how fast a save is answered.

    python benchmarks/watch.py idle [--files 10000] [--seconds 30] [--poll S]
    python benchmarks/watch.py save [--saves 5] [--device cpu]

`idle` watches a folder of so many Python files, a tenth of them references, and prints the processor time that the
watch and its children take once it has begun. `save` runs `watch --json` on examples/diag_matmul.py and saves it while
a candidate is being judged: from the save to the end of the old run, and, once a run has ended, from the save to the
first new row (candidate_written).
"""

from __future__ import annotations

import argparse
import json
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil

EXAMPLE = Path(__file__).parents[1] / "examples" / "diag_matmul.py"


class Program:
    """`cudal1-tui watch --json` and what it tells."""

    def __init__(self, folder: Path, *words: str) -> None:
        command = [sys.executable, "-m", "cudal1_tui", "watch", *words, "--headless", "--json"]
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._told: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._told.put(json.loads(line))

    def until(self, name: str, **fields: object) -> float:
        """The time at which such an event was read."""
        while True:
            event = self._told.get(timeout=300)
            if event["event"] == name and all(event.get(key) == value for key, value in fields.items()):
                return time.time()

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(30)


def idle(files: int, seconds: float, poll: float | None) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        example = EXAMPLE.read_text()
        for number in range(files):
            place = folder / f"part{number // 100}"
            place.mkdir(exist_ok=True)
            (place / f"m{number}.py").write_text(example if number % 10 == 0 else "def f(x):\n    return x + 1\n" * 30)
        start = time.time()
        program = Program(folder, ".", *(["--poll", str(poll)] if poll else []))
        print(f"{files} files: watching after {program.until('watch_started') - start:.2f} s")
        time.sleep(15)  # what is started ahead of the first save
        family = [psutil.Process(program.process.pid)]
        family += family[0].children(recursive=True)

        def spent() -> float:
            return sum(sum(process.cpu_times()[:2]) for process in family)

        before, at = spent(), time.time()
        time.sleep(seconds)
        share = (spent() - before) / (time.time() - at)
        memory = sum(process.memory_info().rss for process in family) / 1e6
        print(f"idle: {share:.2%} of one processor over {seconds:.0f} s, {memory:.0f} MB in {len(family)} processes")
        program.close()


def save(saves: int, device: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, example = folder / "model.py", EXAMPLE.read_text()
        model.write_text(example)
        program = Program(folder, "model.py", "--device", device, "--rounds", "1", "--group", "1")
        stopped, rows, number = [], [], 0

        def change() -> float:
            nonlocal number
            number += 1
            model.write_text(f"{example}\nSAVE = {number}\n")
            return time.time()

        for _ in range(saves):
            program.until("stage_started", stage="checking")
            at = change()
            stopped.append(program.until("run_finished", reason="stopped") - at)
            print(f"stopped after {stopped[-1]:.2f} s", flush=True)
        program.until("run_finished", reason="done")
        for _ in range(saves):
            time.sleep(12)  # the next run's processes are started meanwhile
            at = change()
            rows.append(program.until("candidate_written") - at)
            print(f"first row after {rows[-1]:.2f} s", flush=True)
            program.until("run_finished", reason="done")
        program.close()
        for what, values in (("save to the old run stopped", stopped), ("save to the first new row", rows)):
            shown = ", ".join(f"{value:.2f}" for value in values)
            print(f"{what}: median {statistics.median(values):.2f} s of {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("idle", "save"))
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--poll", type=float)
    parser.add_argument("--saves", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if options.what == "idle":
        idle(options.files, options.seconds, options.poll)
    else:
        save(options.saves, options.device)


if __name__ == "__main__":
    main()
