"""`cudal1-tui bench SUITE`: judges it, keeps the rows, writes the reports."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cudal1_core.archive import Archive, open_archive
from cudal1_core.bench import suites
from cudal1_core.bench.devices import devices
from cudal1_core.bench.judging import JudgingWorker, Work, left_of
from cudal1_core.bench.lanes import lanes_for, play
from cudal1_core.bench.playing import Lent, PlayingWorker, PolicyFacts, left_to_play
from cudal1_core.bench.results import Results, newest
from cudal1_core.bench.row import Row, options_facts, referee_fingerprint
from cudal1_core.errors import UsageError
from cudal1_core.paths import archive_path, new_bench_folder
from cudal1_core.policies import make_policy
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.referee.workers import FOLDER
from cudal1_core.rounds import RunOptions

from cudal1_tui.commands.bench_progress import BenchProgress
from cudal1_tui.commands.bench_report import write_reports
from cudal1_tui.commands.bench_summary import print_summary

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from cudal1_core.bench.judging import Worker
    from cudal1_core.policies.base import Policy

WITH_WEIGHTS = ("transformers", "vllm")  # one for all lanes, since each would load the model


@dataclass(frozen=True, slots=True)
class _Plan:
    """What there is to do; `count` is the number of steps of the progress bar."""

    work: list[Work]
    count: int
    kept: int
    make_worker: Callable[[BenchProgress, str], Worker]  # the second is the name of a device
    shared: Policy | None = None  # closed when everything is played
    by_policy: bool = False


def main(options: argparse.Namespace) -> int:
    """0 every row is there, 1 some are not, or 128 and the signal that stopped it. Raises Cudal1Error."""
    if options.policy and (options.candidates or options.examine):
        other = "--candidates" if options.candidates else "--examine"
        raise UsageError(f"--policy and {other} exclude each other", "Candidates are written, or they exist.")
    subjects = _subjects(options)
    judge = _judge_options(options)
    names = devices(options.device)
    judge = replace(judge, device=names[0])
    out = options.out or _default_out(options)
    if out.suffix != ".jsonl":
        raise UsageError(f"--out {out} does not end in .jsonl", "The rows go there; the reports lie beside it.")
    with Results(out) as results, tempfile.TemporaryDirectory(prefix=f"{FOLDER}{os.getpid()}-bench-") as folder:
        archive, trouble = _archive(options)
        if trouble:
            print(f"cudal1-tui: baselines are not kept: {trouble}", file=sys.stderr)
        with closing(archive):
            plan = _plan(options, subjects, judge, results.rows, Path(folder), archive)
            status = _play(options, plan, lanes_for(names, options.ahead), results)
        rows = newest(results.rows)
    return _finish(rows, out, status)


def _archive(options: argparse.Namespace) -> tuple[Archive, str]:
    """Where baselines are kept; one in memory where there is nothing to look up or to keep, or with the reason why."""
    path = archive_path()
    if options.baselines == "all" or (options.baselines == "known" and path.exists()):
        return open_archive(path)
    return Archive(), ""


def _subjects(options: argparse.Namespace) -> tuple[suites.Subject, ...]:
    chosen = suites.Choice(options.level, options.ids, options.shuffle, options.limit, options.share)
    subjects = suites.choose(suites.read_suite(options.suite), chosen)
    if options.candidates:
        subjects = suites.with_candidates(subjects, options.candidates)
    if options.examine:
        return suites.examined(subjects)
    if not options.policy and not any(subject.candidates for subject in subjects):
        raise UsageError(
            f"{options.suite} holds no candidates",
            "There is nothing to judge these references against.",
            "Add --candidates with a folder or JSON Lines, --policy playbook to have some written, or --examine.",
        )
    return subjects


def _judge_options(options: argparse.Namespace) -> JudgeOptions:
    return JudgeOptions(
        model=options.class_name,
        timeout_s=options.timeout,
        build_timeout_s=options.build_timeout,
        timing_budget_s=options.timing,
        allow_precision=options.allow_precision,
        allow_output_reuse=options.allow_output_reuse,
    )


def _plan(
    options: argparse.Namespace,
    subjects: Sequence[suites.Subject],
    judge: JudgeOptions,
    rows: Sequence[Row],
    folder: Path,
    archive: Archive,
) -> _Plan:
    known = {row.key: row for row in rows}

    def done(key: str) -> bool:
        row = known.get(key)
        if row is None or options.again == "all" or (options.again == "failed" and row.failed):
            return False
        return options.again != "changed" or row.referee == referee_fingerprint()

    facts = options_facts(judge)
    if options.policy:
        policy = _policy_facts(options)
        work = left_to_play(subjects, policy, facts, done)
        shared = _policy(options) if work and options.policy in WITH_WEIGHTS else None

        def playing(listener: BenchProgress, device: str) -> Worker:
            here = replace(judge, device=device)
            run = RunOptions(
                rounds=options.rounds,
                group=options.group,
                seed=options.seed,
                judge=here,
                repair=options.repair,
                baselines=options.baselines,
            )
            return PlayingWorker(run, Lent(shared) if shared else _policy(options), policy, folder, listener)

        return _Plan(work, len(subjects), len(subjects) - len(work), playing, shared, by_policy=True)
    work = left_of(subjects, facts, done)
    total = sum(len(subject.candidates) for subject in subjects)

    def judging(listener: BenchProgress, device: str) -> Worker:
        here = replace(judge, device=device)
        return JudgingWorker(here, folder, listener, baselines=options.baselines, archive=archive)

    return _Plan(work, total, total - sum(len(one.sources) for one in work), judging)


def _policy_facts(options: argparse.Namespace) -> PolicyFacts:
    names = ("policy", "model", "url", "adapter", "rounds", "group", "seed", "repair")
    facts = {name: str(value) if (value := getattr(options, name)) is not None else None for name in names}
    told = options.policy if options.model is None else f"{options.policy} {Path(options.model).name}"
    return PolicyFacts(told, facts)


def _policy(options: argparse.Namespace) -> Policy:
    return make_policy(options.policy, url=options.url, model=options.model, adapter=options.adapter)


def _play(options: argparse.Namespace, plan: _Plan, lanes: list[str], results: Results) -> int:
    """0 all done, 1 not all, or 128 and the signal that ended it."""
    if plan.kept:
        print(f"cudal1-tui: {plan.kept} of {plan.count} have a row in {results.path}", file=sys.stderr)
    if not plan.work:
        return 0
    end = time.monotonic() + options.budget if options.budget else None
    done = 0

    def going() -> bool:
        return end is None or time.monotonic() < end

    async def drive(progress: BenchProgress) -> int:
        received: list[int] = []
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def interrupt(number: int) -> None:  # cancelling lets the lanes end their children
            received.append(number)
            task.cancel()

        def keep(rows: list[Row]) -> None:
            nonlocal done
            results.add(rows)
            steps = 1 if plan.by_policy else len(rows)
            done += steps
            progress.finished(rows, steps)

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupt, number)
        try:
            make_worker = partial(plan.make_worker, progress)
            await play(plan.work, lanes[: len(plan.work)], make_worker, progress, keep, going=going)
        except asyncio.CancelledError:
            return 128 + received[0]
        finally:
            if plan.shared is not None:
                await plan.shared.close()
        return 0 if plan.kept + done == plan.count else 1

    with BenchProgress(plan.count, plan.kept) as progress:
        status = asyncio.run(drive(progress))
    if left := plan.count - plan.kept - done:
        print(f"cudal1-tui: {left} of {plan.count} are left; the same command goes on with them.", file=sys.stderr)
    return status


def _default_out(options: argparse.Namespace) -> Path:
    name = options.suite.resolve().stem + (f"-{options.policy}" if options.policy else "")
    try:
        return new_bench_folder() / f"{name}.jsonl"
    except OSError as error:
        raise UsageError(f"Results cannot be kept here: {error}", "", "Say where with --out FILE.jsonl.") from error


def _finish(rows: list[Row], out: Path, status: int) -> int:
    """The reports, the table on standard output, and the exit status."""
    if rows:
        write_reports(rows, out)
        print_summary(rows)
    if status == 0 and any(row.failed for row in rows):
        return 1
    return status
