"""What a runner cannot do while it is stopped, what it cannot use up, and what that costs the next candidate."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import psutil
import pytest
from cudal1_core.errors import UnjudgeableError
from cudal1_core.referee import sandbox
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.verdict import Verdict

from benchmarks.soak import grown, soak
from tests.referee.conftest import INPUTS, RELU

RIGHT = RELU.format(name="ModelNew")
OPTIONS = JudgeOptions(device="cpu", timing_budget_s=0.2, timeout_s=10, build_timeout_s=30)

# A timer's SIGCONT continues a stopped process; its handler sets the timers again.
SELF_CONTINUED = (
    """
import ctypes, signal, subprocess, sys
CHILD = '''
import ctypes, signal, time
libc = ctypes.CDLL(None)
class Event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("signo", ctypes.c_int), ("rest", ctypes.c_char * 52)]
class Times(ctypes.Structure):
    _fields_ = [(n, ctypes.c_long) for n in ("every_s", "every_ns", "first_s", "first_ns")]
timers = [ctypes.c_void_p() for _ in range(20)]
for timer in timers:
    assert libc.timer_create(1, ctypes.byref(Event(signo=signal.SIGCONT)), ctypes.byref(timer)) == 0
def arm(*ignored):
    for number, timer in enumerate(timers, 1):
        libc.timer_settime(timer, 0, ctypes.byref(Times(0, 0, 0, number * 500_000)), None)
signal.signal(signal.SIGCONT, arm)
end = time.monotonic() + 60
while time.monotonic() < end:
    arm()
'''
subprocess.Popen([sys.executable, "-S", "-c", CHILD])
"""
    + RIGHT
)

FORK_BOMB = (
    """
import os, time
if os.fork() == 0:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            os.fork()
        except OSError:
            pass
time.sleep(30)
"""
    + RIGHT
)

# Many small processes instead: each has little memory of its own.
CROWD = (
    """
import os, subprocess, sys
sleepers = [subprocess.Popen(["sleep", "60"]) for _ in range(1500)]
"""
    + RIGHT
)

UNMAPPED_FILES = (
    """
import os
files, chunk = [], bytes(1 << 24)
for _ in range(200):
    files.append(os.memfd_create("hog"))
    os.write(files[-1], chunk)
"""
    + RIGHT
)

DESCRIPTORS = (
    """
import sys
channel = sys.modules["cudal1_core.referee.candidate_worker"].Channel
honest = channel._send
channel._send = lambda self, data, fds=None: honest(self, data, fds or [0] * 60)
"""
    + RIGHT
)


class Available:
    """A machine with 2 GiB to spare, so that the limit is 1 GiB."""

    available = 2 << 30


async def judged(referee: Referee, source: str) -> Verdict:
    return await referee.judge("c", source, lambda event: None)


def test_what_runs_on_when_stopped_is_found_out(relu_reference: Path) -> None:
    async def run() -> list[Verdict]:
        async with Referee(OPTIONS) as referee:
            await referee.open(relu_reference)
            return [await judged(referee, source) for source in (SELF_CONTINUED, RIGHT)]

    bad, right = asyncio.run(run())
    assert (bad.verdict, bad.category) == ("rejected", "dishonest"), bad.reason
    assert "stopped" in str(bad.reason)
    assert right.accepted, right.reason


def test_processes_and_memory_are_limited(relu_reference: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psutil.virtual_memory", Available)

    async def run() -> list[Verdict]:
        async with Referee(OPTIONS) as referee:
            await referee.open(relu_reference)
            return [await judged(referee, source) for source in (FORK_BOMB, CROWD, UNMAPPED_FILES, RIGHT)]

    bomb, crowd, files, right = asyncio.run(run())
    assert bomb.category in ("out_of_memory", "crashed"), bomb.reason
    assert "and was ended" in str(bomb.reason)
    assert (crowd.category, "processes" in str(crowd.reason)) == ("crashed", True), crowd.reason
    assert (files.category, "shared memory" in str(files.reason)) == ("out_of_memory", True), files.reason
    assert right.accepted, right.reason
    assert {"memory watch", "process watch"} <= set(right.isolation)


def test_descriptors_that_come_with_claims_are_not_kept(relu_reference: Path) -> None:
    async def run() -> tuple[Verdict, int]:
        async with Referee(OPTIONS) as referee:
            await referee.open(relu_reference)
            await judged(referee, RIGHT)
            assert referee.trusted is not None
            worker = psutil.Process(referee.trusted.pid).children()[0]
            before = worker.num_fds()
            return await judged(referee, DESCRIPTORS), worker.num_fds() - before

    verdict, more = asyncio.run(run())
    assert verdict.accepted, verdict.reason
    assert more <= 0


def test_a_reference_that_fails_meanwhile_is_not_the_candidates_fault(tmp_path: Path) -> None:
    """And the next candidate meets a reference that is in step again."""
    flag = tmp_path / "fail"
    reference = tmp_path / "reference.py"
    fails = f"        if pathlib.Path({str(flag)!r}).exists():\n            raise RuntimeError('no luck')\n"
    source = RELU.format(name="Model").replace("        return", fails + "        return")
    reference.write_text("import pathlib\n" + source + INPUTS)

    async def run() -> Verdict:
        async with Referee(OPTIONS) as referee:
            await referee.open(reference)
            flag.touch()
            with pytest.raises(UnjudgeableError, match="no luck"):
                await judged(referee, RIGHT)
            flag.unlink()
            return await judged(referee, RIGHT)

    assert asyncio.run(run()).accepted


def test_every_layer_that_holds_is_named(relu_reference: Path) -> None:
    async def run() -> Verdict:
        async with Referee(OPTIONS) as referee:
            await referee.open(relu_reference)
            return await judged(referee, RIGHT)

    named = asyncio.run(run()).isolation
    for layer, answer in sandbox.probe().items():
        assert any(name.startswith(layer) for name in named) is (answer == "works"), (layer, answer, named)


def test_no_secret_stays_in_the_process_that_candidates_are_forked_from(
    relu_reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trusted worker has the user's environment; the zygote, whose memory each candidate inherits, never does."""
    monkeypatch.setenv("HUB_TOKEN_FOR_TESTS", "secret-value-of-the-hub")

    seen: list[bool] = []

    class Looking(Referee):
        async def _hand_over(self, message: dict[str, Any], ends: list[socket.socket]) -> None:
            assert self.workers.zygote is not None
            seen.append(holds(self.workers.zygote.pid, b"secret-value-of-the-hub"))
            await super()._hand_over(message, ends)

    async def run() -> bool:
        async with Looking(OPTIONS) as referee:
            await referee.open(relu_reference)
            assert referee.trusted is not None
            return holds(psutil.Process(referee.trusted.pid).children()[0].pid, b"secret-value-of-the-hub")

    assert asyncio.run(run())
    assert seen == [False]


def holds(pid: int, text: bytes) -> bool:
    """Whether the text lies anywhere in the writable memory of a process."""
    found = False
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    with Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        for line in maps:
            span, permissions = line.split()[:2]
            begin, end = (int(part, 16) for part in span.split("-"))
            if permissions.startswith("rw"):
                try:
                    memory.seek(begin)
                    found |= text in memory.read(end - begin)
                except (OSError, OverflowError, ValueError):
                    continue
    return found


def test_one_candidate_after_another_leaves_nothing() -> None:
    names = ["right", "killed", "children", "right", "disk", "daemon", "descriptors", "right"]
    found, wrong = asyncio.run(soak(names, "cpu", candidates=8, every=4))
    assert (wrong, grown(found[0], found[-1])) == ([], [])
