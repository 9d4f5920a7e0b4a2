"""Candidates built ahead: what their compilers made is there when they are judged, and nothing else has changed."""

from __future__ import annotations

import asyncio
import os
import tarfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import psutil
import pytest
from cudal1_core.events import Event, StageStarted
from cudal1_core.referee import caches
from cudal1_core.referee.ahead import Built, _refusal
from cudal1_core.referee.host import Referee
from cudal1_core.referee.loading import found_by_compiler
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.verdict import Verdict

# Stands for a compiler: what it makes takes no time, and is wrong unless it was there before.
MAKES = """
import os, torch  # as load_inline does
made = os.path.join(os.environ["TORCH_EXTENSIONS_DIR"], "ext", "made")
before = os.path.exists(made)
os.makedirs(os.path.dirname(made), exist_ok=True)
open(made, "w").write(os.environ.get("CUDA_VISIBLE_DEVICES", "any"))
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) if before and open(made).read() == "any" else x
"""
COMPILES = """
import torch
from torch.utils.cpp_extension import load_inline
SOURCE = "torch::Tensor go(torch::Tensor x) {{ return torch::relu(x){end} }}"
ext = load_inline(name="ahead", cpp_sources=SOURCE, functions=["go"], verbose={verbose})
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.go(x)
"""
SLEEPS = "import time  # load_inline\nfor _ in range(600): time.sleep(0.05)\n"

Result = TypeVar("Result")


def with_referee(reference: Path, play: Callable[[Referee], Awaitable[Result]], **options: float) -> Result:
    async def run() -> Result:
        judging = JudgeOptions(device="cpu", timing_budget_s=0.5, **options)  # type: ignore[arg-type]
        async with Referee(judging) as referee:
            await referee.open(reference)
            return await play(referee)

    return asyncio.run(run())


def built_and_judged(reference: Path, source: str) -> tuple[Verdict, list[str], str]:
    """The verdict, the stages it went through, and what was printed."""
    events: list[Event] = []

    async def play(referee: Referee) -> tuple[Verdict, str]:
        referee.log_to(reference.parent)
        assert referee.builds_ahead(source)
        await referee.build_ahead("c1", source, events.append)
        verdict = await referee.judge("c1", source, events.append)
        assert not list(referee.workers.root.glob("*.tar"))
        return verdict, (reference.parent / "c1.log").read_text()

    verdict, log = with_referee(reference, play)
    return verdict, [event.stage for event in events if isinstance(event, StageStarted)], log


def test_what_was_made_ahead_is_there_for_the_judgement_which_makes_it_again(relu_reference: Path) -> None:
    verdict, stages, _ = built_and_judged(relu_reference, MAKES)
    assert verdict.accepted, verdict.reason
    assert stages[:4] == ["building", "queued", "building", "checking"]


def test_it_is_there_once_and_for_this_source_alone(relu_reference: Path) -> None:
    async def play(referee: Referee) -> list[Verdict]:
        await referee.build_ahead("c1", MAKES, lambda event: None)
        sources = [MAKES + "# another\n", MAKES, MAKES]
        return [await referee.judge("c1", source, lambda event: None) for source in sources]

    assert [verdict.accepted for verdict in with_referee(relu_reference, play)] == [False, True, False]


def test_no_gpu_is_in_sight(relu_reference: Path) -> None:
    once = MAKES.replace('open(made, "w").write', "before or open(made, 'w').write")
    verdict, _, _ = built_and_judged(relu_reference, once)
    assert not verdict.accepted


def test_a_real_compiler_has_nothing_left_to_do(relu_reference: Path) -> None:
    verdict, _, log = built_and_judged(relu_reference, COMPILES.format(end=";", verbose=True))
    assert verdict.accepted, verdict.reason
    assert "ninja: no work to do." in log
    assert "[1/2]" in log  # what the compiler said when it was at work


def test_what_a_compiler_refuses_is_refused_in_its_words(relu_reference: Path) -> None:
    verdict, stages, log = built_and_judged(relu_reference, COMPILES.format(end="", verbose=False))
    assert (verdict.verdict, verdict.category) == ("rejected", "build_failed")
    assert "candidate.py:5: RuntimeError: Error building extension 'ahead'" in str(verdict.reason)
    assert "main.cpp" in str(verdict.reason)
    assert "-isystem" not in str(verdict.reason)
    assert verdict.checks[-1].name == "build"
    assert verdict.isolation
    assert stages == ["building", "queued"]
    assert "-isystem" in log  # there, all that was said


@pytest.mark.parametrize(
    "source", ["raise RuntimeError('no GPU')", "import nowhere", "def broken(", "raise SystemExit"]
)
def test_what_fails_otherwise_is_built_once_more(relu_reference: Path, source: str) -> None:
    verdict, stages, _ = built_and_judged(relu_reference, f"# load_inline\n{source}\n")
    assert verdict.verdict == "rejected"
    assert stages[2] == "building"


@pytest.mark.parametrize("source", [MAKES.replace("load_inline", "nothing"), "", "import torch\n"])
def test_what_calls_no_compiler_is_not_built_ahead(relu_reference: Path, source: str) -> None:
    async def play(referee: Referee) -> bool:
        return referee.builds_ahead(source)

    assert not with_referee(relu_reference, play)


def test_one_that_takes_too_long_is_left_to_its_judgement(relu_reference: Path) -> None:
    async def play(referee: Referee) -> Built | None:
        await referee.build_ahead("c1", SLEEPS, lambda event: None)
        return referee.ahead.take(SLEEPS.encode())

    assert with_referee(relu_reference, play, build_timeout_s=1.0) is None


def test_cutting_it_off_leaves_nothing(relu_reference: Path) -> None:
    async def play(referee: Referee) -> tuple[int, list[Path]]:
        before = len(referee.workers.running)
        building = asyncio.create_task(referee.build_ahead("c1", SLEEPS, lambda event: None))
        while len(referee.workers.running) == before:
            await asyncio.sleep(0.01)
        building.cancel()
        await asyncio.wait([building])
        return len(referee.workers.running) - before, list(referee.workers.root.glob("w3*"))

    assert with_referee(relu_reference, play) == (0, [])
    assert not psutil.Process().children(recursive=True)


def test_a_builder_is_stopped_while_something_is_timed(relu_reference: Path) -> None:
    """Where there are no cores to spare, as on a CPU."""

    async def play(referee: Referee) -> tuple[bool, bool]:
        building = asyncio.create_task(referee.build_ahead("c1", SLEEPS, lambda event: None))
        while not referee.ahead._controls:
            await asyncio.sleep(0.01)

        async def stopped(wanted: bool) -> bool:
            family = psutil.Process(referee.workers.running[-1].pid).children(recursive=True)
            for _ in range(200):
                if any(one.status() == psutil.STATUS_STOPPED for one in family) == wanted:
                    return True
                await asyncio.sleep(0.01)
            return False

        referee.ahead.hold()
        held = await stopped(True)
        referee.ahead.go_on()
        went_on = await stopped(False)
        building.cancel()
        await asyncio.wait([building])
        return held, went_on

    assert with_referee(relu_reference, play) == (True, True)


def test_several_workers_can_be_started_at_once(relu_reference: Path) -> None:
    async def play(referee: Referee) -> list[Verdict]:
        sources = [f"{MAKES}# {number}\n" for number in range(4)]
        named = [(f"c{number}", source) for number, source in enumerate(sources)]
        ahead = [referee.build_ahead(name, source, lambda event: None) for name, source in named]
        plain = (
            "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"
        )
        await asyncio.gather(*ahead, referee.judge("c9", plain, lambda event: None))
        pids = [process.pid for process in referee.workers.running]
        assert len(set(pids)) == len(pids)
        return [await referee.judge(name, source, lambda event: None) for name, source in named]

    assert all(verdict.accepted for verdict in with_referee(relu_reference, play))


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        ("RuntimeError: Error building extension 'x': main.cpp:1:2: error: expected ';'", True),
        ("RuntimeError: Error building extension 'x': /tmp/cuda.cu(3): error: identifier \"y\" is undefined", True),
        ("RuntimeError: Error building extension 'x': fatal error: Killed signal terminated program cc1plus", False),
        ("RuntimeError: Error building extension 'x': nvcc fatal : Unsupported gpu architecture 'native'", False),
        ("RuntimeError: Error building extension 'x': cc1plus: error: out of memory: Cannot allocate memory", False),
        ("RuntimeError: No CUDA GPUs are available", False),
    ],
)
def test_only_a_fault_that_a_compiler_found_is_held_against_the_code(words: str, refused: bool) -> None:
    answer = {"failed": "build_failed", "error": words, "line": f"candidate.py:3: {words}"}
    assert bool(_refusal(answer)) == refused
    assert not _refusal({**answer, "failed": "crashed"})


def test_a_failed_build_is_told_by_its_faults() -> None:
    message = (
        "Error building extension 'x': [1/2] c++ -isystem /very/long -c main.cpp\nFAILED: main.o\n"
        "main.cpp: In function 'f':\nmain.cpp:1:2: error: expected ';'\n  1 | int x\n"
        "/usr/bin/ld: main.o: undefined reference to `g'\nninja: build stopped: subcommand failed.\n"
    )
    faults = ["main.cpp:1:2: error: expected ';'", "/usr/bin/ld: main.o: undefined reference to `g'"]
    assert found_by_compiler(message) == "Error building extension 'x': " + "\n".join(faults)
    for other in ("no such file: error", "Error building extension 'x'"):
        assert found_by_compiler(other) == other


def test_regular_files_are_carried_and_nothing_else(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    home = one / caches.KEPT / "ext"
    home.mkdir(parents=True)
    (home / "ext.so").write_bytes(b"code")
    (home / "ext.so").chmod(0o4755)
    os.utime(home / "ext.so", ns=(1_700_000_000_900_000_000,) * 2)
    (home / "lock").touch()
    (home / "link").symlink_to("/etc/passwd")
    os.mkfifo(home / "pipe")
    (one / "secret").write_text("outside")
    packed = tmp_path / "packed.tar"
    caches.pack(str(one), os.open(packed, os.O_WRONLY | os.O_CREAT))
    other.mkdir()
    caches.unpack(str(packed), str(other))
    found = {str(path.relative_to(other)) for path in other.rglob("*") if not path.is_dir()}
    assert found == {f"{caches.KEPT}/ext/ext.so"}
    carried = (other / caches.KEPT / "ext" / "ext.so").stat()
    assert (carried.st_size, carried.st_mode & 0o7777, carried.st_mtime_ns) == (4, 0o700, 1_700_000_000 * 10**9)


def test_too_much_is_not_carried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / caches.KEPT
    home.mkdir(parents=True)
    with (home / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    packed = tmp_path / "packed.tar"
    caches.pack(str(tmp_path), os.open(packed, os.O_WRONLY | os.O_CREAT))
    assert packed.stat().st_size == 0
    caches.unpack(str(packed), str(tmp_path / "nowhere"))
    (home / "sparse").unlink()
    monkeypatch.setattr(caches, "MOST_FILES", 3)
    for number in range(4):
        (home / str(number)).touch()
    caches.pack(str(tmp_path), os.open(packed, os.O_WRONLY))
    assert packed.stat().st_size == 0


def test_an_archive_that_is_none_costs_the_next_worker_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "packed.tar"
    broken.write_bytes(b"no archive at all")
    with pytest.raises(tarfile.TarError):
        caches.unpack(str(broken), str(tmp_path))
