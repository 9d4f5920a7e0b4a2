"""`cudal1-tui verify`: one candidate, one verdict, one exit status."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cudal1_core.errors import Cudal1Error, UnjudgeableError, UsageError
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.reference_file import read_reference
from cudal1_core.verdict import Verdict

from cudal1_tui import arguments

if TYPE_CHECKING:
    import argparse
    from collections.abc import Coroutine

    from cudal1_core.advice.advice import Advice
    from cudal1_core.advice.adviser import Adviser
    from cudal1_core.archive import Archive
    from cudal1_core.events import Event
    from cudal1_core.referee.verify import Judgement

PAPER_BUDGET_S = 1200.0  # CUDA-L1's final test times a candidate for 20 minutes


def main(words: list[str]) -> int:
    """Exit status 0 accepted, 1 rejected, 2 cannot be judged, 3 the referee itself failed.

    With --json, standard output is exactly one object, also where the command line is wrong.
    """
    as_json = "--json" in words
    try:
        options = arguments.verify_parser().parse_args(words[1:])
        if options.reference is None:
            from cudal1_tui.commands.verify_again import main as again

            return again(options)
        if options.candidate is None:
            raise UsageError("cudal1-tui verify: CANDIDATE.py is missing", "A candidate defines `class ModelNew`.")
        judgement, advice, status = _judge(options)
        if options.receipt is not None:
            _write_receipt(options, judgement)
    except Cudal1Error as error:
        print(error, file=sys.stderr)
        category = error.category if isinstance(error, UnjudgeableError) else None
        if as_json:
            print_json(Verdict("unjudgeable", category, f"{error.title} {error.meaning}".strip()))
        return error.exit_status
    if as_json:
        print_json(judgement.verdict, advice)
    if not as_json or options.explain:
        from cudal1_tui.verdict_text import print_verdict

        print_verdict(judgement, advice, explain=options.explain, to_errors=as_json)
    return status


def judge_options(options: argparse.Namespace) -> JudgeOptions:
    budget = PAPER_BUDGET_S if options.timing == "paper" else JudgeOptions().timing_budget_s
    return JudgeOptions(
        device=options.device,
        model=options.model,
        mode=options.mode,
        timeout_s=options.timeout,
        build_timeout_s=options.build_timeout,
        allow_precision=options.allow_precision,
        allow_output_reuse=options.allow_output_reuse,
        expose=tuple(path.resolve() for path in options.expose),
        timing_budget_s=budget,
        timing=options.timing,
    )


def print_json(verdict: Verdict, advice: Advice | None = None) -> None:
    told = advice.to_json() if advice is not None else None
    print(json.dumps({**verdict.to_json(), "advice": told}, allow_nan=False))


def interruptible(judging: Coroutine[None, None, Judgement]) -> tuple[Judgement, int]:
    """Runs it to its end, or to Ctrl+C or SIGTERM, which give no verdict and status 130 or 143."""
    return asyncio.run(_interruptible(judging))


def _judge(options: argparse.Namespace) -> tuple[Judgement, Advice | None, int]:
    from cudal1_core.advice.adviser import Adviser
    from cudal1_core.advice.reviewer import Reviewer
    from cudal1_core.referee.verify import verify

    read_reference(options.reference)
    _check_paths(options)
    reviewer = Reviewer(options.reviewer) if options.reviewer else None
    with contextlib.closing(_archive(options.baselines)) as archive:
        judgement, status = interruptible(
            verify(
                options.reference,
                options.candidate,
                judge_options(options),
                _tell_trouble,
                archive=archive,
                baselines=options.baselines,
            )
        )
        advice = None
        if status <= 2:
            with contextlib.suppress(KeyboardInterrupt):  # the verdict is there; what is said beside it can be left
                advice = asyncio.run(_advise(options, judgement.verdict, Adviser(archive.cheats, reviewer)))
        return judgement, advice, status


async def _advise(options: argparse.Namespace, verdict: Verdict, adviser: Adviser) -> Advice:
    """What reading the candidate suggests, once the verdict stands."""
    reference, source = (
        path.read_bytes().decode("utf-8", "replace") for path in (options.reference, options.candidate)
    )
    try:
        advice = await adviser.advise(source)
        return await adviser.review(reference, source, advice) if adviser.wants_review(verdict, None) else advice
    finally:
        await adviser.close()


def _archive(baselines: str) -> Archive:
    """The archive of the working directory; one in memory where there is none and nothing is to be kept."""
    from cudal1_core.archive import Archive, open_archive
    from cudal1_core.paths import archive_path, new_archive_path

    if baselines == "eager" or (baselines == "known" and not archive_path().exists()):
        return Archive()
    try:
        archive, trouble = open_archive(new_archive_path())
    except OSError as error:
        archive, trouble = Archive(), f"What baselines took cannot be kept: {error}"
    if trouble:
        print(f"cudal1-tui: {trouble}", file=sys.stderr)
    return archive


def _tell_trouble(event: Event) -> None:
    from cudal1_core.events import TroubleMet

    if isinstance(event, TroubleMet):
        print(f"cudal1-tui: {event.title}", file=sys.stderr)


async def _interruptible(judging: Coroutine[None, None, Judgement]) -> tuple[Judgement, int]:
    from cudal1_core.referee.verify import Judgement

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    received: list[int] = []

    def interrupt(number: int) -> None:  # cancelling lets the referee end its children
        received.append(number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt, number)
    try:
        judgement = await judging
    except asyncio.CancelledError:
        return Judgement(Verdict("unjudgeable", None, "interrupted")), 128 + received[0]
    return judgement, judgement.verdict.exit_status


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


def _write_receipt(options: argparse.Namespace, judgement: Judgement) -> None:
    from cudal1_core.referee.receipt import Receipt

    try:
        files = (options.reference, options.candidate)
        made = Receipt.of(files, judge_options(options), judgement.verdict, judgement.helpers, judgement.measured)
        made.write(options.receipt)
    except OSError as error:
        raise UsageError(f"--receipt {options.receipt} cannot be written: {error.strerror}") from error
