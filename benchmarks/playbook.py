"""What the playbook reaches on references it was not written for, with every candidate judged by the referee.

    python benchmarks/playbook.py REFERENCE... [--device cuda] [--group 6] [--seconds 25] [--out rows.jsonl]

REFERENCE is a Python file, a folder of them, or JSON Lines with the fields level_id, task_id and ref_code (the form of
the CUDA-L1 release); `--ids 1/2,1/12` picks rows, `--share 0/2` takes every second one. Rows already in --out are
kept and not run again, so that a long run can go on later. Prints a table and a summary, in which candidates that
only wrap torch.compile are counted apart.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cudal1_core.archive import open_archive
from cudal1_core.events import BaselineTimed, CandidateWritten, RunFinished, TaskDescribed, TroubleMet, VerdictReached
from cudal1_core.paths import new_run_folder
from cudal1_core.policies import make_policy
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.rounds import Run, RunOptions

COMPILED = "operation fusion"  # the technique that wraps torch.compile
FASTER = 1.05


@dataclass(frozen=True, slots=True)
class Subject:
    """One reference to try: a name for the table and its source."""

    name: str
    source: str


def subjects(sources: list[Path], ids: set[str]) -> Iterator[Subject]:
    for source in sources:
        if source.suffix == ".jsonl":
            for line in source.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                name = f"{row['level_id']}/{row['task_id']}"
                if not ids or name in ids:
                    yield Subject(name, row["ref_code"])
        else:
            files = sorted(source.glob("*.py")) if source.is_dir() else [source]
            yield from (Subject(file.stem, file.read_text(encoding="utf-8")) for file in files)


async def run_one(subject: Subject, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Best speedups of one reference: over all candidates, and without those that wrap torch.compile."""
    path = folder / f"{subject.name.replace('/', '_')}.py"
    path.write_text(subject.source, encoding="utf-8")
    judging = JudgeOptions(device=options.device, timing_budget_s=options.timing, build_timeout_s=60.0)
    run_folder = new_run_folder()
    archive, _ = open_archive(folder / "archive.db")
    run = Run(
        path,
        RunOptions(rounds=options.rounds, group=options.group, budget_s=options.seconds, judge=judging),
        Referee(judging, log_dir=run_folder.logs),
        make_policy("playbook", log_dir=run_folder.logs),
        archive,
        run_folder,
    )
    start = time.monotonic()
    techniques: dict[str, tuple[str, ...]] = {}
    row: dict[str, Any] = {"name": subject.name, "candidates": [], "trouble": None, "eager_ms": None}
    try:
        async for event in run.events():
            match event:
                case TaskDescribed():
                    row["device"] = event.task.device_name
                    row["labels"] = event.task.labels
                case BaselineTimed():
                    row["eager_ms"] = event.ms
                case CandidateWritten():
                    techniques[event.candidate.id] = event.candidate.techniques
                case VerdictReached():
                    verdict = event.verdict
                    row["candidates"].append(
                        {
                            "techniques": techniques[event.candidate],
                            "verdict": verdict.verdict,
                            "category": verdict.category,
                            "reason": (verdict.reason or "")[:200],
                            "speedup": verdict.speedup,
                            "interval": verdict.speedup_interval,
                            "labels": verdict.labels,
                            "at_s": round(time.monotonic() - start, 2),
                        }
                    )
                case TroubleMet():
                    row["trouble"] = f"{event.title} {event.meaning}"[:300]
                case RunFinished():
                    row["ended"] = event.reason
    finally:
        archive.close()
    row["seconds"] = round(time.monotonic() - start, 1)
    return row


def best(row: dict[str, Any], *, compiled: bool) -> float | None:
    """Best accepted speedup that loads the reference's weights; without torch.compile unless `compiled`."""
    found = [
        c["speedup"]
        for c in row["candidates"]
        if c["verdict"] == "accepted"
        and "not_drop_in" not in c["labels"]
        and (compiled or COMPILED not in c["techniques"])
    ]
    return max(found, default=None)


def summary(rows: list[dict[str, Any]]) -> list[str]:
    lines = []
    read = [row for row in rows if row["eager_ms"] is not None]
    for text, compiled in (("all techniques", True), ("without torch.compile", False)):
        values = [best(row, compiled=compiled) for row in read]
        accepted = [value for value in values if value is not None]
        faster = [value for value in accepted if value > FASTER]
        # no faster candidate means the person keeps the reference, which is 1.0
        kept = [max(value or 1.0, 1.0) for value in values]
        geomean = math.exp(sum(map(math.log, kept)) / len(kept)) if kept else float("nan")
        lines.append(
            f"{text}: {len(accepted)} of {len(read)} with an accepted candidate,"
            f" {len(faster)} above {FASTER}x, geometric mean of the best {geomean:.2f}x"
        )
    wrong = sum(c["verdict"] == "rejected" for row in read for c in row["candidates"])
    total = sum(len(row["candidates"]) for row in read)
    lines.append(f"{total} candidates judged, {wrong} rejected; {len(rows) - len(read)} references not judged")
    return lines


def line(row: dict[str, Any]) -> str:
    values = [best(row, compiled=compiled) for compiled in (True, False)]
    shown = " ".join(f"{value:7.2f}x" if value else "      - " for value in values)
    eager = f"{row['eager_ms']:9.3f} ms" if row["eager_ms"] is not None else "           -"
    bad = "; ".join(f"{'+'.join(c['techniques'])}: {c['category']}" for c in row["candidates"] if c["category"])
    count, seconds = len(row["candidates"]), row["seconds"]
    return f"{row['name']:22s} {eager} {shown} {count} {seconds:5.1f} s {bad} {row['trouble'] or ''}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("references", nargs="+", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--group", type=int, default=6, help="candidates a round")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="budget a reference")
    parser.add_argument("--timing", type=float, default=3.0, help="most seconds of timing a candidate")
    parser.add_argument("--ids", default="", help="rows of a JSON Lines file, as level/task, separated by commas")
    parser.add_argument("--share", default="0/1", help="K/N: only every N-th reference, beginning with the K-th")
    parser.add_argument("--out", type=Path, help="JSON Lines file; rows that it holds are not run again")
    options = parser.parse_args()
    part, parts = map(int, options.share.split("/"))
    chosen = list(subjects(options.references, set(filter(None, options.ids.split(",")))))[part::parts]
    rows = []
    if options.out and options.out.exists():
        rows = [json.loads(text) for text in options.out.read_text().splitlines()]
    done = {row["name"] for row in rows}
    with tempfile.TemporaryDirectory() as folder:
        for subject in chosen:
            if subject.name in done:
                continue
            row = asyncio.run(run_one(subject, options, Path(folder)))
            rows.append(json.loads(json.dumps(row)))
            print(line(rows[-1]), flush=True)
            if options.out:
                with options.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    print("\n".join(summary(rows)))


if __name__ == "__main__":
    sys.exit(main())
