"""The doors between the rooms, as a running interpreter sees them; the static ones are in pyproject.toml."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "transformers", "vllm", "trl", "numpy")


def contracts() -> dict[str, dict[str, list[str]]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return {contract["id"]: contract for contract in settings["tool"]["importlinter"]["contracts"]}


def with_torch() -> list[str]:
    return contracts()["torch"]["allowed_importers"]


def light_modules() -> list[str]:
    """Every module of the core that may be imported by the process that paints."""
    core = ROOT / "core"
    names = []
    for file in sorted((core / "cudal1_core").rglob("*.py")):
        name = ".".join(file.relative_to(core).with_suffix("").parts).removesuffix(".__init__")
        if not any(name == heavy or name.startswith(f"{heavy}.") for heavy in with_torch()):
            names.append(name)
    return names


def loaded_by(program: str) -> set[str]:
    """Top-level names in sys.modules of a fresh interpreter after the program."""
    tail = "\nimport sys; print(*{name.split('.')[0] for name in sys.modules})"
    answer = subprocess.run([sys.executable, "-c", program + tail], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return set(answer.stdout.splitlines()[-1].split())


def help_of(*words: str) -> str:
    return (
        "import contextlib, io\nfrom cudal1_tui.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        f"    main({list(words)})"
    )


@pytest.mark.parametrize(
    "module", ["cli", "app", "headless", "start", "workbench", "commands.train_child", "commands.models"]
)
def test_the_process_that_paints_never_imports_torch(module: str) -> None:
    assert loaded_by(f"import cudal1_tui.{module}") & set(HEAVY) == set()


def test_the_light_part_of_the_core_imports_neither_torch_nor_textual() -> None:
    program = "".join(f"import {name}\n" for name in light_modules())
    assert loaded_by(program) & {*HEAVY, "textual"} == set()


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("verify", "--help"),
        ("bench", "--help"),
        ("train", "sft", "--help"),
        ("doctor", "--help"),
        ("watch", "--help"),
        ("check", "--help"),
        ("history", "--help"),
        ("prune", "--help"),
        ("--version",),
    ],
)
def test_help_loads_neither_the_screen_nor_torch(words: tuple[str, ...]) -> None:
    assert loaded_by(help_of(*words)) & {*HEAVY, "textual", "rich"} == set()


def test_what_draws_no_screen_never_imports_textual() -> None:
    names = ["verify", "doctor", "bench_suite", "bench_report", "bench_compare", "train_child", "models"]
    names += ["watch", "check", "history", "prune"]
    commands = ", ".join(f"cudal1_tui.commands.{name}" for name in names)
    assert "textual" not in loaded_by(f"import cudal1_tui.headless, {commands}")


def test_what_may_import_torch_is_what_nothing_else_may_import() -> None:
    children = contracts()["children"]
    assert children["protected_modules"] == children["allowed_importers"] == with_torch()
