"""Time from start to first paint, in a pty: the workbench with a reference against a bare Textual app.

    python benchmarks/first_paint.py [--runs 7] [--reference FILE.py]

Both are measured in turn in the same run, so that the ratio means something on a busy machine. It reports
and never fails: a clock is no test.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

BARE = """
from textual.app import App
from textual.widgets import Static

class Bare(App):
    def compose(self):
        yield Static("first-paint")

Bare().run()
"""

WORKBENCH = """
import asyncio, sys
from pathlib import Path
from cudal1_tui.app import WorkbenchApp, main

class Silent:
    paused = False
    async def events(self):
        await asyncio.Event().wait()
        yield
    async def stop(self): ...

main(WorkbenchApp(Silent(), reference=Path(sys.argv[1])))
"""

REFERENCE = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(128, 128)]


def get_init_inputs():
    return []
"""


def first_paint(code: str, marker: bytes, *arguments: str, size: tuple[int, int] = (160, 50)) -> float:
    """Seconds from starting the interpreter until `marker` reaches the terminal."""
    started = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        os.execve(sys.executable, [sys.executable, "-c", code, *arguments], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    seen = b""
    try:
        while marker not in seen:
            ready, _, _ = select.select([terminal], [], [], 20)
            if not ready:
                raise SystemExit(f"no paint in 20 s; the terminal shows {seen[-400:]!r}")
            seen += os.read(terminal, 65536)
        return time.perf_counter() - started
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--reference", type=Path, help="a module file; by default a small one made here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        reference = options.reference or Path(folder) / "softmax.py"
        if options.reference is None:
            reference.write_text(REFERENCE)
        bare, workbench = [], []
        for run in range(options.runs + 1):
            times = first_paint(BARE, b"first-paint"), first_paint(WORKBENCH, b"candidates", str(reference))
            if run:  # the first pair warms the caches
                bare.append(times[0])
                workbench.append(times[1])
    one, other = statistics.median(bare), statistics.median(workbench)
    print(f"bare Textual app  {one * 1000:6.0f} ms")
    print(f"workbench         {other * 1000:6.0f} ms")
    print(f"ratio             {other / one:6.2f}    (median of {options.runs})")


if __name__ == "__main__":
    main()
