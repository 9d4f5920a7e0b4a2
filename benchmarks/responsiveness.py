"""Frames a second and key to effect, in a pty: while text streams, and over ten and ten thousand candidates.

    python benchmarks/responsiveness.py [--keys 150] [--size 80x24]

A key moves the selection; its effect is the mark of the selected row, which nothing else draws. The bare app answers
the same keys by moving the cursor of an `OptionList`, while it appends the same text to a `Log`. A frame is what
arrives with less than 8 ms between its pieces. It reports and never fails: a clock is no test.
"""

from __future__ import annotations

import argparse
import os
import select
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from streams import playing

MARK = "▎".encode()
GAP_S = 0.008  # without a byte, between two frames

BARE = """
from textual.app import App
from textual.widgets import Log, OptionList

class Bare(App):
    BINDINGS = [("j", "move(1)", ""), ("k", "move(-1)", "")]
    CSS = "OptionList { height: 10 }"

    def compose(self):
        yield OptionList(*(f"c{n}" for n in range(8)))
        yield Log()

    def action_move(self, by):
        listed = self.query_one(OptionList)
        listed.highlighted = ((listed.highlighted or 0) + by) % 8
        listed.replace_option_prompt_at_index(0, "▎" if listed.get_option_at_index(0).prompt == "c0" else "c0")

    async def on_mount(self):
        self.run_worker(self.stream())

    async def stream(self):
        log = self.query_one(Log)
        async for _, text in tokens(float(sys.argv[3])):
            log.write(text)

Bare().run()
"""

WORKBENCH = """
from pathlib import Path
from cudal1_core.candidate import Candidate
from cudal1_core.events import CandidateWritten, RoundStarted, RunFinished, RunStarted, TokenArrived, VerdictReached
from cudal1_core.verdict import Verdict
from cudal1_tui.app import WorkbenchApp, main

class Playing:
    paused = False
    async def events(self):
        count, rate = int(sys.argv[2]), float(sys.argv[3])
        yield RunStarted(run="r", reference=sys.argv[1], policy="bench", device="cpu", rounds=1, group=count,
                         budget_s=None, folder="")
        yield RoundStarted(round=1, exemplars=())
        if not rate:
            for n in range(count):
                id = f"c{n + 1:02d}"
                code = f"import torch\\n\\n\\nclass ModelNew(torch.nn.Module):\\n    number = {n}\\n"
                written = Candidate(id=id, round=1, policy="bench", source=code, text=code, title="t")
                yield CandidateWritten(candidate=written)
                speed = 1 + n / count
                verdict = Verdict("accepted", speedup=speed, speedup_interval=(speed - 0.1, speed + 0.1))
                yield VerdictReached(candidate=id, verdict=verdict, seconds=1.0)
            yield RunFinished(reason="done", best=None, best_speedup=None)
        async for stream, text in tokens(rate, count):
            yield TokenArrived(candidate=f"c{stream + 1:02d}", text=text)
    async def stop(self): ...

main(WorkbenchApp(Playing(), reference=Path(sys.argv[1])))
"""


@dataclass
class Measured:
    opened_s: float  # from the start of the interpreter until all candidates are there
    frames: float  # a second
    latencies_ms: list[float]

    def __str__(self) -> str:
        ordered = sorted(self.latencies_ms)
        high = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
        return (
            f"open {self.opened_s:6.2f} s  {self.frames:5.1f} frames/s  key to effect: median "
            f"{statistics.median(ordered):5.1f} ms, p99 {high:5.1f} ms, longest {ordered[-1]:5.1f} ms"
        )


class Terminal:
    def __init__(self, master: int) -> None:
        self.master = master

    def press(self, key: str) -> None:
        os.write(self.master, key.encode())

    def read(self, seconds: float) -> bytes:
        """What comes until then; nothing where nothing does."""
        return os.read(self.master, 65536) if select.select([self.master], [], [], seconds)[0] else b""

    def frames(self, seconds: float) -> float:
        """A second."""
        begun = last = time.monotonic()
        count = 0
        while (now := time.monotonic()) < begun + seconds:
            if self.read(0.002):
                count += now - last > GAP_S
                last = time.monotonic()
        return count / seconds

    def wait_for(self, text: bytes) -> None:
        seen, until = b"", time.monotonic() + 120
        while text not in seen and time.monotonic() < until:
            seen = seen[-len(text) :] + self.read(1)

    def quiet(self, seconds: float, longest: float) -> None:
        """Waits until nothing has come for so long."""
        until = time.monotonic() + longest
        while time.monotonic() < until and self.read(seconds):
            pass

    def latency_ms(self, key: str) -> float:
        """Between a key and the next mark of a selected row."""
        while self.read(0):
            pass
        started, seen = time.perf_counter(), b""
        self.press(key)
        while MARK not in seen:
            seen = seen[-len(MARK) :] + self.read(5)
            if time.perf_counter() - started > 5:
                raise SystemExit(f"{key} had no effect")
        return (time.perf_counter() - started) * 1000


def measure(program: str, *words: str, size: tuple[int, int], keys: int, streams: bool) -> Measured:
    begun = time.monotonic()
    with playing(program, *words, size=size) as (_, master):
        terminal = Terminal(master)
        terminal.read(20)
        if streams:
            terminal.frames(3.0)
            opened = 0.0
        else:
            terminal.wait_for(f"{words[1]} of {words[1]} accepted".encode())
            opened = time.monotonic() - begun
            terminal.quiet(0.5, 5)
        frames = terminal.frames(4.0)
        terminal.press("k")
        terminal.quiet(0.2, 1)
        latencies = []
        for number in range(keys):
            latencies.append(terminal.latency_ms("kj"[number % 2]))
            terminal.frames(0.05 + 0.037 * (number % 7))  # at no fixed place between two frames
        return Measured(opened, frames, latencies)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=150)
    parser.add_argument("--size", default="80x24")
    options = parser.parse_args()
    columns, rows = (int(part) for part in options.size.split("x"))
    how = {"size": (columns, rows), "keys": options.keys}
    with tempfile.TemporaryDirectory() as folder:
        reference = Path(folder) / "model.py"
        reference.write_text("class Model: ...\n")
        for name, program, count, rate in (
            ("bare, streaming", BARE, 8, 1000),
            ("workbench, streaming", WORKBENCH, 8, 1000),
            ("10 candidates", WORKBENCH, 10, 0),
            ("10,000 candidates", WORKBENCH, 10_000, 0),
        ):
            print(f"{name:<22}", end="", flush=True)
            print(measure(program, str(reference), str(count), str(rate), streams=rate > 0, **how), flush=True)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
