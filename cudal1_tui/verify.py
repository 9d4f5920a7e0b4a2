"""`cudal1-tui verify`: one candidate, one verdict, one exit status."""

from __future__ import annotations

import asyncio
import hashlib
import json
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudal1_core.errors import Cudal1Error, UnjudgeableError, UsageError
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.reference_file import read_reference
from cudal1_core.verdict import Verdict

from cudal1_tui import arguments

if TYPE_CHECKING:
    import argparse

PAPER_BUDGET_S = 1200.0  # CUDA-L1's final test times a candidate for 20 minutes


def main(words: list[str]) -> int:
    """Exit status 0 accepted, 1 rejected, 2 cannot be judged, 3 the referee itself failed.

    With --json, standard output is exactly one object, also where the command line is wrong.
    """
    as_json = "--json" in words
    try:
        options = arguments.verify_parser().parse_args(words[1:])
        verdict, status = _judge(options)
        if options.receipt is not None:
            _write_receipt(options, verdict)
    except Cudal1Error as error:
        print(error, file=sys.stderr)
        category = error.category if isinstance(error, UnjudgeableError) else None
        if as_json:
            print_json(Verdict("unjudgeable", category, f"{error.title} {error.meaning}".strip()))
        return error.exit_status
    if as_json:
        print_json(verdict)
    if not as_json or options.explain:
        from cudal1_tui.verdict_text import print_verdict

        print_verdict(verdict, explain=options.explain, to_errors=as_json)
    return status


def judge_options(options: argparse.Namespace) -> JudgeOptions:
    budget = {"timing_budget_s": PAPER_BUDGET_S} if options.timing == "paper" else {}
    return JudgeOptions(
        device=options.device,
        model=options.model,
        mode=options.mode,
        timeout_s=options.timeout,
        build_timeout_s=options.build_timeout,
        allow_precision=options.allow_precision,
        allow_output_reuse=options.allow_output_reuse,
        expose=tuple(path.resolve() for path in options.expose),
        **budget,
    )


def print_json(verdict: Verdict) -> None:
    print(json.dumps(verdict.to_json(), allow_nan=False))


def _judge(options: argparse.Namespace) -> tuple[Verdict, int]:
    read_reference(options.reference)
    _check_paths(options)
    return asyncio.run(_verify(options))


async def _verify(options: argparse.Namespace) -> tuple[Verdict, int]:
    from cudal1_core.referee.verify import verify

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    received: list[int] = []

    def interrupt(number: int) -> None:  # cancelling lets the referee end its children
        received.append(number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt, number)
    try:
        verdict = await verify(options.reference, options.candidate, judge_options(options), lambda event: None)
    except asyncio.CancelledError:
        return Verdict("unjudgeable", None, "interrupted"), 128 + received[0]
    return verdict, verdict.exit_status


def _check_paths(options: argparse.Namespace) -> None:
    candidate: Path = options.candidate
    if not candidate.exists():
        raise UsageError(f"{candidate}: no such file", "A candidate is a file that defines `class ModelNew`.")
    if candidate.is_dir():
        raise UsageError(f"{candidate} is a folder", "Give one file that defines `class ModelNew`.")
    for path in options.expose:
        if not path.exists():
            raise UsageError(f"--expose {path}: no such file or folder")
    if options.receipt is not None and not options.receipt.parent.is_dir():
        raise UsageError(f"--receipt {options.receipt} lies in a folder that does not exist")


def _write_receipt(options: argparse.Namespace, verdict: Verdict) -> None:
    """What was judged, how, and what came of it: enough to judge it again elsewhere."""
    judging: dict[str, Any] = asdict(judge_options(options))
    judging["expose"] = [str(path) for path in judging["expose"]]
    files = {name: getattr(options, name) for name in ("reference", "candidate")}
    receipt = {
        "verdict": verdict.to_json(),
        "files": {name: {"path": str(path.resolve()), "sha256": _hash(path)} for name, path in files.items()},
        "options": judging,
        "at": time.time(),
    }
    try:
        options.receipt.write_text(json.dumps(receipt, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--receipt {options.receipt} cannot be written: {error.strerror}") from error


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
