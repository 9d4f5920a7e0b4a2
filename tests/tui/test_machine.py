"""The state of the machine is read beside the event loop and drawn from an event like everything else."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from cudal1_core.events import MachineSampled

from cudal1_tui import machine
from cudal1_tui.words import machine_text
from tests.tui import recorded

if TYPE_CHECKING:
    from tests.tui.conftest import Opened

H200 = MachineSampled(gpu="NVIDIA H200", use=87.0, used_gb=41.2, total_gb=150.7, celsius=64)


def test_a_watch_tells_of_the_processor_where_there_is_no_gpu() -> None:
    told: queue.Queue[MachineSampled] = queue.Queue()
    watch = machine.Watch(told.put, None)
    watch.start()
    sample = told.get(timeout=30)
    watch.stop()
    assert sample.gpu is None
    assert sample.use is not None
    assert 0 <= sample.use <= 100
    assert sample.used_gb is not None
    assert sample.total_gb is not None
    assert 0 < sample.used_gb <= sample.total_gb


def test_what_is_not_known_takes_no_room() -> None:
    assert machine_text(H200) == "87% · 41/151 GB · 64 °C"
    assert machine_text(MachineSampled(gpu="NVIDIA H200")) == ""
    assert machine_text(MachineSampled(use=40.0)) == "cpu 40%"


def test_only_living_processes_that_are_not_ours_are_foreign() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert machine.foreign([os.getpid(), child.pid]) == 0
        assert machine.foreign([1, os.getpid()]) == 1
    finally:
        child.communicate()
    assert machine.foreign([child.pid]) == 0


def test_a_gpu_is_found_through_what_cuda_may_see(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert machine.physical(1) == 1
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert machine.physical(1) == 5
    for visible, index in (("3", 1), ("GPU-4f1c", 0)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        with pytest.raises(ValueError, match=r"GPU|hides"):
            machine.physical(index)


async def test_the_first_line_holds_it_and_marks_foreign_load(opened: Opened) -> None:
    async with opened((160, 50)) as desk:
        await desk.tell([*recorded.middle(str(desk.reference)), H200])
        assert "87% · 41/151 GB · 64 °C" in desk.seen.splitlines()[0]
        await desk.tell([MachineSampled(gpu="NVIDIA H200", use=99.0, foreign=2)])
        assert "! 2 foreign" in desk.seen.splitlines()[0]
