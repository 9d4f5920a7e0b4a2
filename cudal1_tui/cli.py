"""The command line. Every import that costs time happens inside the command that needs it."""

from __future__ import annotations

import difflib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cudal1_core.errors import Cudal1Error, UsageError

from cudal1_tui import arguments

if TYPE_CHECKING:
    import argparse

HINT = "cudal1-tui MODULE.py opens the workbench; cudal1-tui --help lists the rest."


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status; see docs/cli.md."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _command(words)(words)
    except Cudal1Error as error:
        print(error, file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read us has gone, as in `cudal1-tui keys | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except Exception:
        traceback.print_exc()
        print("cudal1-tui itself failed; please report the lines above.", file=sys.stderr)
        return 3


def _command(words: list[str]) -> Callable[[list[str]], int]:
    first = next((word for word in words if not word.startswith("-")), None)
    if words and words[0] == first and first in _COMMANDS:
        return _COMMANDS[first]
    if words and words[0] == first and not _is_path(first):
        near = difflib.get_close_matches(first, arguments.COMMANDS, n=1, cutoff=0.5)
        meant = f"Did you mean `cudal1-tui {near[0]}`?" if near else f"Commands: {', '.join(_COMMANDS)}."
        raise UsageError(f"cudal1-tui: {first!r} is neither a command nor a file", meant, HINT)
    return _run


def _is_path(word: str) -> bool:
    return Path(word).exists() or word.endswith(".py") or os.sep in word or "." in word


def _run(words: list[str]) -> int:
    if "--version" in words:
        return _version()
    if not words:
        raise UsageError("cudal1-tui needs the file of the module to make faster", "", HINT)
    parser = arguments.run_parser()
    from cudal1_tui.settings import user_settings

    settings, problems = user_settings()
    parser.set_defaults(rounds=settings.rounds, group=settings.group)
    options = parser.parse_args(words)
    from cudal1_core.reference_file import read_reference

    read_reference(options.module)
    if options.out is not None:
        _check_out(options)
    if not options.headless and not options.json and (reason := why_no_screen()):
        print(f"cudal1-tui: {reason}, so this run is headless.", file=sys.stderr)
        options.headless = True
    if options.headless or options.json:
        for problem in problems:
            print(f"cudal1-tui: {problem}", file=sys.stderr)
        from cudal1_tui.headless import main as headless

        return headless(options)
    from cudal1_tui.workbench import main as workbench

    return workbench(options)


def _verify(words: list[str]) -> int:
    from cudal1_tui.commands.verify import main as verify

    return verify(words)


def _doctor(words: list[str]) -> int:
    options = arguments.doctor_parser().parse_args(words[1:])
    if options.timing:
        from cudal1_tui.commands.doctor_timing import main as timing

        return timing(options)
    from cudal1_tui.commands.doctor import main as doctor

    return doctor(as_json=options.json)


def _bench(words: list[str]) -> int:
    from cudal1_tui.commands.bench import main as bench

    return bench(words)


def _watch(words: list[str]) -> int:
    from cudal1_tui.commands.watch_arguments import watch_parser
    from cudal1_tui.settings import user_settings

    settings, problems = user_settings()
    parser = watch_parser()
    parser.set_defaults(rounds=settings.rounds, group=settings.group)
    options = parser.parse_args(words[1:])
    from cudal1_tui.commands.watch import main as watch

    return watch(options, problems)


def _train(words: list[str]) -> int:
    from cudal1_tui.commands.train import main as train

    return train(words)


def _models(words: list[str]) -> int:
    from cudal1_tui.commands.train_arguments import models_parser

    options = models_parser().parse_args(words[1:])
    from cudal1_tui.commands.models import main as models

    return models(options)


def _check(words: list[str]) -> int:
    from cudal1_tui.commands.check import main as check

    return check(words)


def _history(words: list[str]) -> int:
    from cudal1_tui.commands.past_arguments import history_parser

    options = history_parser().parse_args(words[1:])
    from cudal1_tui.commands.history import main as history

    return history(options)


def _resume(words: list[str]) -> int:
    from cudal1_tui.commands.resume import main as resume

    return resume(words)


def _prune(words: list[str]) -> int:
    from cudal1_tui.commands.past_arguments import prune_parser

    options = prune_parser().parse_args(words[1:])
    from cudal1_tui.commands.prune import main as prune

    return prune(options)


def _keys(words: list[str]) -> int:
    arguments.keys_parser().parse_args(words[1:])
    from cudal1_tui.actions import keys_text, rebound
    from cudal1_tui.settings import user_settings

    settings, problems = user_settings()
    actions, clashes = rebound(settings.keys)
    print(keys_text(actions), flush=True)
    for problem in (*problems, *clashes):
        print(f"cudal1-tui: {problem}", file=sys.stderr)
    return 0


def _export(words: list[str]) -> int:
    options = arguments.export_parser().parse_args(words[1:])
    from cudal1_tui.commands.export import main as export

    return export(options)


def _serve(words: list[str]) -> int:
    options, rest = arguments.serve_parser().parse_known_args(words[1:])
    module = arguments.run_parser().parse_args(rest).module
    from cudal1_core.reference_file import read_reference

    read_reference(module)
    from cudal1_tui.commands.serve import main as serve

    return serve(options.port, rest)


def _version() -> int:
    from importlib.metadata import version

    print(f"cudal1-tui {version('cudal1-tui')}")
    return 0


def _check_out(options: argparse.Namespace) -> None:
    """Finds out before the work, not after it, that its result has nowhere to go."""
    out: Path = options.out
    if out.is_dir() or not out.parent.is_dir():
        what = "is a folder" if out.is_dir() else "lies in a folder that does not exist"
        raise UsageError(f"--out {out} {what}", "It names the file the result is written to.")
    if out.resolve() == options.module.resolve():
        raise UsageError(f"--out {out} is the reference", "The reference is never replaced.")
    if out.exists() and not options.overwrite:
        raise UsageError(f"--out {out} exists", "No file is replaced unasked.", "Add --overwrite to replace it.")


def why_no_screen() -> str:
    """Empty where the workbench can be drawn; it draws on standard error and reads standard input."""
    if os.environ.get("TEXTUAL_DRIVER"):  # a browser draws it
        return ""
    for name, stream in (("input", sys.stdin), ("output", sys.stdout), ("error", sys.stderr)):
        if stream is None or not stream.isatty():
            return f"standard {name} is not a terminal"
    if os.environ.get("TERM", "") in ("", "dumb"):
        return "this terminal cannot draw (TERM is dumb or not set)"
    return ""


_COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "verify": _verify,
    "bench": _bench,
    "doctor": _doctor,
    "keys": _keys,
    "train": _train,
    "models": _models,
    "watch": _watch,
    "check": _check,
    "history": _history,
    "resume": _resume,
    "prune": _prune,
    "export": _export,
    "serve": _serve,
}
