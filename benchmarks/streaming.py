"""Processor time while text streams and while nothing happens, in a pty: the workbench against a bare Textual app.

    python benchmarks/streaming.py [--seconds 6] [--size 80x24]

Eight candidates stream 1,000 tokens a second in all; the bare app appends the same text to a `Log`. Both run in turn
in the same call, because a machine's own pace changes. `waiting` is a run that has nothing to tell, whose clock and
machine are shown; `done` is one that is over. It reports and never fails: a clock is no test.
"""

from __future__ import annotations

import argparse
import os
import select
import tempfile
import time
from pathlib import Path

from streams import playing

BARE = """
from textual.app import App
from textual.widgets import Log

class Bare(App):
    def compose(self):
        yield Log()

    async def on_mount(self):
        self.run_worker(self.stream())

    async def stream(self):
        log = self.query_one(Log)
        async for _, text in tokens(float(sys.argv[2])):
            log.write(text)

Bare().run()
"""

WORKBENCH = """
from pathlib import Path
from cudal1_core.events import RoundStarted, RunFinished, RunStarted, TokenArrived
from cudal1_tui.app import WorkbenchApp, main

class Streaming:
    paused = False
    async def events(self):
        yield RunStarted(run="r", reference=sys.argv[1], policy="bench", device="cpu", rounds=1, group=8,
                         budget_s=None, folder="")
        yield RoundStarted(round=1, exemplars=())
        rate = float(sys.argv[2])
        if rate < 0:
            yield RunFinished(reason="done", best=None, best_speedup=None)
        async for stream, text in tokens(rate, 8):
            yield TokenArrived(candidate=f"c{stream:02d}", text=text)
    async def stop(self): ...

main(WorkbenchApp(Streaming(), reference=Path(sys.argv[1])))
"""


def measure(program: str, reference: Path, rate: int, seconds: float, size: tuple[int, int]) -> tuple[float, float]:
    """Percent of a core and kB/s to the terminal, from four seconds after its start."""
    with playing(program, str(reference), str(rate), size=size) as (pid, master):
        drain(master, 4.0)
        before, began = processor_s(pid), time.monotonic()
        sent = drain(master, seconds)
        took = time.monotonic() - began
        return 100 * (processor_s(pid) - before) / took, sent / took / 1000


def drain(master: int, seconds: float) -> int:
    """Reads what comes for so long; returns how many bytes."""
    until, count = time.monotonic() + seconds, 0
    while (left := until - time.monotonic()) > 0:
        if select.select([master], [], [], left)[0]:
            count += len(os.read(master, 65536))
    return count


def processor_s(pid: int) -> float:
    """User and system time of a process, from /proc."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--size", default="80x24")
    options = parser.parse_args()
    columns, rows = (int(part) for part in options.size.split("x"))
    with tempfile.TemporaryDirectory() as folder:
        reference = Path(folder) / "model.py"
        reference.write_text("class Model: ...\n")
        for what, rate in (("streaming", 1000), ("waiting", 0), ("done", -1)):
            for name, program in (("bare", BARE), ("workbench", WORKBENCH)):
                cpu, sent = measure(program, reference, rate, options.seconds, (columns, rows))
                print(f"{what:<10}{name:<11}{cpu:5.1f} % of a core  {sent:7.1f} kB/s", flush=True)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
