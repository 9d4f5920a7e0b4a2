"""Judges many candidates in a row through one referee, good ones and awful ones, and shows what they leave behind.

    python benchmarks/soak.py --device cpu --candidates 1000

Prints memory, processes, descriptors and temporary files after ten candidates, on the way and at the end. Exit status 1
where a good candidate was refused, a bad one accepted, or something has grown.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import psutil
from cudal1_core.errors import Cudal1Error
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.referee.workers import FOLDER

REFERENCE = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)
    def forward(self, x):
        return torch.relu(self.layer(x))
def get_inputs():
    return [torch.randn(256, 64)]
"""
GOOD = REFERENCE.replace("class Model(", "class ModelNew(").partition("def get_inputs")[0]


def instead(line: str) -> str:
    """The good candidate with another line in place of its answer."""
    return GOOD.replace("return torch.relu(self.layer(x))", line)


DISK = """
import os
try:
    with open(os.environ["TMPDIR"] + "/filler", "wb") as file:
        file.write(bytes(1 << 28))
except OSError:
    pass
"""
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
"""
FILES_IN_MEMORY = """
import os
for _ in range(40):
    os.write(os.memfd_create("filler"), bytes(1 << 22))
"""
THREADS = """
import threading, time
for _ in range(50):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
"""
CHILDREN = """
import subprocess
for _ in range(20):
    subprocess.Popen(["sleep", "600"])
"""

# name -> source, categories it may be rejected with (none: it is right and must be accepted)
MIX: dict[str, tuple[str, tuple[str, ...]]] = {
    "right": (GOOD, ()),
    "wrong": (instead("return self.layer(x)"), ("wrong_result",)),
    "right again": (GOOD + "\n# as before\n", ()),
    "no code": ("", ("no_code",)),
    "syntax": ("class ModelNew(:", ("build_failed",)),
    "raises": (instead("raise ValueError('no')"), ("crashed",)),
    "exits": (instead("import os; os._exit(0)"), ("crashed",)),
    "segfault": (instead("import ctypes; ctypes.string_at(8)"), ("crashed",)),
    "right after a crash": (GOOD, ()),
    "hangs": (instead("while True: pass"), ("timed_out",)),
    "flood": (GOOD + "\nfor _ in range(2000): print('x' * 10000)\n", ()),
    "hog": (
        GOOD + "\nheld = []\nwhile True: held.append(bytearray(1 << 26))\n",
        ("out_of_memory", "crashed", "timed_out"),
    ),
    "files in memory": (FILES_IN_MEMORY + GOOD, ()),
    "disk": (DISK + GOOD, ()),
    "children": (CHILDREN + GOOD, ()),
    "daemon": (DAEMON + GOOD, ()),
    "descriptors": ("import os\nheld = [os.dup(1) for _ in range(500)]\n" + GOOD, ()),
    "threads": (THREADS + GOOD, ()),
    "killed": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n" + GOOD, ("crashed",)),
    "right at last": (GOOD, ()),
}


@dataclass(frozen=True, slots=True)
class Left:
    """What there is between two candidates. Sizes in MiB."""

    processes: int  # of the referee, this one included
    memory: int  # all of theirs, what they share counted once
    descriptors: int
    temporary_files: int  # below the referee's own folder
    folders: int  # of referees, in the temporary folder
    shared_memory: int  # of the whole machine
    gpu_memory: int  # used on the device by anybody; 0 on the CPU


async def soak(names: Sequence[str], device: str, candidates: int, every: int) -> tuple[list[Left], list[str]]:
    """What was left after each `every` candidates, and what was judged wrongly. Names are of MIX, again and again."""
    options = JudgeOptions(device=device, timing_budget_s=0.05, timeout_s=2.0, build_timeout_s=8.0)
    found, wrong = [], []
    seconds: dict[str, list[float]] = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "reference.py")
        path.write_text(REFERENCE)
        async with Referee(options) as referee:
            await referee.open(path)
            alone = await settled(99)
            for number in range(candidates):
                name = names[number % len(names)]
                source, categories = MIX[name]
                begin = time.monotonic()
                try:
                    verdict = await referee.judge(f"c{number}", source, lambda event: None)
                    right = verdict.accepted if not categories else verdict.category in categories
                    told = f"{verdict.verdict} {verdict.category or ''} {verdict.reason or ''}"
                except Cudal1Error as error:
                    right, told = False, str(error)
                seconds[name].append(time.monotonic() - begin)
                if not right:
                    wrong.append(f"candidate {number} ({name}): {told[:300]}")
                if (number + 1) % every == 0 or number + 1 == candidates:
                    await settled(alone)
                    found.append(look(referee, device))
                    print(f"{number + 1:5d}", "".join(f"{value:16d}" for value in astuple(found[-1])), flush=True)
    slowest = sorted(seconds, key=lambda name: -max(seconds[name]))[:4]
    print("slowest:", ", ".join(f"{name} {max(seconds[name]):.1f} s" for name in slowest))
    return found, wrong


async def settled(most: int) -> int:
    """Waits until no more than `most` processes are left of the referee, as ended ones take a moment; their number."""
    deadline = time.monotonic() + 10
    while (count := len(psutil.Process().children(recursive=True))) > most and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    return count


def look(referee: Referee, device: str) -> Left:
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    memory = descriptors = 0
    for process in family:
        with contextlib.suppress(psutil.Error):
            memory += process.memory_full_info().pss
            descriptors += process.num_fds()
    return Left(
        processes=len(family),
        memory=memory >> 20,
        descriptors=descriptors,
        temporary_files=sum(len(files) for _, _, files in os.walk(referee.workers.root)),
        folders=len(list(Path(tempfile.gettempdir()).glob(f"{FOLDER}{os.getpid()}-*"))),
        shared_memory=psutil.virtual_memory().shared >> 20,
        gpu_memory=gpu_memory(device) >> 20,
    )


def gpu_memory(device: str) -> int:
    if device == "cpu":
        return 0
    import pynvml

    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(int(device.partition(":")[2] or 0))
    return int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)


def grown(first: Left, last: Left) -> list[str]:
    """What there is more of than measuring twice can explain. Memory of the whole machine is shown, never judged."""
    slack = {"processes": 0, "memory": 200, "descriptors": 4, "temporary_files": 0, "folders": 0, "gpu_memory": 64}
    return [
        f"{name}: {getattr(first, name)}, then {getattr(last, name)}"
        for name, more in slack.items()
        if getattr(last, name) > getattr(first, name) + more
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--candidates", type=int, default=1000)
    options = parser.parse_args()
    print(f"{'':5}", "".join(f"{field.name:>16}" for field in fields(Left)))
    begin = time.monotonic()
    found, wrong = asyncio.run(soak([*MIX], options.device, options.candidates, 10))
    print(f"{options.candidates} candidates in {time.monotonic() - begin:.0f} s")
    more = grown(found[0], found[-1])
    for line in wrong + more:
        print(line)
    return 1 if wrong or more else 0


if __name__ == "__main__":
    sys.exit(main())
