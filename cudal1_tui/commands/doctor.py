"""`cudal1-tui doctor`: what works on this machine, what does not, and what to do about it."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

State = Literal["works", "limited", "missing"]

# Asked in a child, so that this process never imports torch.
_ASK_TORCH = """
import json, torch
cuda = torch.cuda.is_available()
names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if cuda else []
print(json.dumps({"version": torch.__version__, "built": torch.version.cuda, "cuda": cuda, "devices": names}))
"""


@dataclass(frozen=True, slots=True)
class Finding:
    topic: str
    state: State
    detail: str
    next_step: str = ""  # only where something is to be done


def main(*, as_json: bool) -> int:
    """Exit status 0 when a run on some device is possible, 1 when not."""
    findings = examine()
    possible = run_is_possible(findings)
    if as_json:
        print(json.dumps({"ready": possible, "findings": [asdict(finding) for finding in findings]}))
    else:
        _print(findings, possible)
    return 0 if possible else 1


def examine() -> list[Finding]:
    return [
        python(),
        *torch(ask_torch()),
        gpu(),
        compiler("C++ compiler", ("c++", "g++", "clang++"), "torch.compile and C++ extensions need one"),
        compiler("nvcc", ("nvcc",), "candidates with CUDA sources need it"),
        compiler("ninja", ("ninja",), "extensions build with it"),
        *isolation(),
        terminal(os.environ, sys.stdout.isatty()),
        clipboard(os.environ),
        folder(Path.cwd()),
    ]


def run_is_possible(findings: list[Finding]) -> bool:
    needed = ("Python", "torch")
    return all(finding.state != "missing" for finding in findings if finding.topic in needed)


def python() -> Finding:
    return Finding("Python", "works", f"{platform.python_version()} at {sys.executable}")


def ask_torch() -> dict[str, Any] | str:
    """What torch says of itself, or why it says nothing."""
    try:
        answer = subprocess.run(
            [sys.executable, "-c", _ASK_TORCH], capture_output=True, text=True, timeout=120, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if answer.returncode != 0:
        return (answer.stderr.strip().splitlines() or ["it ended without a word"])[-1]
    found: dict[str, Any] = json.loads(answer.stdout.strip().splitlines()[-1])
    return found


def torch(answer: dict[str, Any] | str) -> list[Finding]:
    if isinstance(answer, str):
        step = "Install it: pip install torch (see pytorch.org for the build for your driver)."
        return [Finding("torch", "missing", answer, step)]
    built = f"built for CUDA {answer['built']}" if answer["built"] else "built without CUDA"
    found = [Finding("torch", "works", f"{answer['version']}, {built}")]
    if answer["cuda"]:
        return [*found, Finding("CUDA", "works", ", ".join(answer["devices"]))]
    step = (
        "Look at the GPU line: the driver may be missing or too old for this build."
        if answer["built"]
        else "On a machine with a GPU, install a CUDA build of torch."
    )
    return [*found, Finding("CUDA", "limited", "not available; runs go to the CPU", step)]


def gpu() -> Finding:
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Finding("GPU", "limited", f"no NVIDIA driver answers ({error})", "Without one, runs go to the CPU.")
    try:
        told = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            gib = pynvml.nvmlDeviceGetMemoryInfo(handle).total / 2**30
            told.append(f"{pynvml.nvmlDeviceGetName(handle)}, {gib:.0f} GiB")
        driver = pynvml.nvmlSystemGetDriverVersion()
        return Finding("GPU", "works", f"{', '.join(told) or 'none'}; driver {driver}")
    except pynvml.NVMLError as error:
        return Finding("GPU", "limited", str(error))
    finally:
        pynvml.nvmlShutdown()


def compiler(topic: str, names: tuple[str, ...], use: str) -> Finding:
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found:
        return Finding(topic, "works", found)
    return Finding(topic, "limited", "not found", f"Optional: {use}.")


def isolation() -> list[Finding]:
    """Each layer of the referee's sandbox, as it is tried on this machine."""
    from cudal1_core.referee.sandbox import probe

    return [
        Finding(f"isolation: {layer}", "works" if answer == "works" else "limited", answer)
        for layer, answer in probe().items()
    ]


def terminal(environment: Mapping[str, str], is_terminal: bool) -> Finding:
    term = environment.get("TERM", "")
    if not is_terminal or term in ("", "dumb"):
        why = "standard output is not a terminal" if not is_terminal else f"TERM is {term or 'not set'}"
        return Finding("terminal", "limited", f"{why}; runs are headless")
    size = shutil.get_terminal_size()
    truecolor = environment.get("COLORTERM", "") in ("truecolor", "24bit")
    colours = "16 million colours" if truecolor else "256 colours" if "256color" in term else "16 colours"
    inside = ", in tmux" if environment.get("TMUX") else ", in screen" if environment.get("STY") else ""
    detail = f"{term}, {colours}, {size.columns}x{size.lines}{inside}"
    if size.columns < 60 or size.lines < 15:
        return Finding("terminal", "limited", detail, "The workbench wants at least 60x15.")
    return Finding("terminal", "works", detail)


def clipboard(environment: Mapping[str, str]) -> Finding:
    tools: tuple[str, ...] = ()
    if environment.get("WAYLAND_DISPLAY"):
        tools = ("wl-copy",)
    elif environment.get("DISPLAY"):
        tools = ("xclip", "xsel")
    found = next((tool for tool in tools if shutil.which(tool)), None)
    if found:
        return Finding("clipboard", "works", found)
    return Finding("clipboard", "works", "through the terminal (OSC 52), where the terminal allows it")


def folder(working_directory: Path) -> Finding:
    home = working_directory / ".cudal1"
    place = home if home.exists() else working_directory
    if os.access(place, os.W_OK):
        free = shutil.disk_usage(place).free / 2**30
        return Finding("runs", "works", f"kept in {home}, {free:.1f} GiB free")
    step = "Start from a folder that can be written, or work goes on in memory alone."
    return Finding("runs", "limited", f"{place} cannot be written", step)


def _print(findings: list[Finding], possible: bool) -> None:
    from rich.console import Console
    from rich.text import Text

    marks = {"works": ("✓", "green"), "limited": ("!", "yellow"), "missing": ("✗", "red")}
    console = Console(highlight=False)
    for finding in findings:
        mark, colour = marks[finding.state]
        console.print(Text.assemble((mark, colour), f" {finding.topic}: {finding.detail}"), soft_wrap=True)
        if finding.next_step:
            console.print(Text(f"    {finding.next_step}", style="dim"), soft_wrap=True)
    console.print(Text("A run is possible." if possible else "A run is not possible yet.", style="bold"))
