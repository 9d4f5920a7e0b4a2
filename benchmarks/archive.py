"""How long an archive of many candidates takes to open, to give exemplars, and to tell its history.

    python benchmarks/archive.py [--candidates 1000000] [--keep FILE.db]

Makes an archive of runs of 50 candidates, a tenth of them of one task, then times each thing in fresh processes
(`open`) or on one connection (the rest). `update` is an archive of the version before, brought up to date.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from cudal1_core import exemplars
from cudal1_core.archive import Archive
from cudal1_core.candidate import source_hash
from cudal1_core.exemplars import ExemplarOptions
from cudal1_core.history import page_of_runs
from cudal1_core.reference import Task
from cudal1_core.verdict import Check, Verdict

RUN = 50  # candidates
TASKS = 10
_OPEN = """
import sys, time
from pathlib import Path
from cudal1_core.archive import Archive
start = time.perf_counter()
Archive(Path(sys.argv[1])).close()
print(time.perf_counter() - start)
"""


def task(number: int) -> Task:
    source = f"class Model: ...  # {number}\n" * 20
    shape = ("float32[1024, 1024]",)
    return Task("/w/m.py", "Model", source, source_hash(source), "cpu", "a processor", "float32", shape, shape, 0)


def code(number: int) -> str:
    return f"# candidate {number}\nclass ModelNew:\n" + "    def forward(self, x):\n        return x + 1\n" * 8


def verdict(rng: random.Random) -> Verdict:
    checks = tuple(Check(f"check {n}", True, "all outputs within 1e-6 of their scale, 12 input sets") for n in range(7))
    if rng.random() < 0.3:
        return Verdict("rejected", "wrong_result", "differs", checks=checks)
    speedup = round(rng.lognormvariate(0.3, 0.6), 2)
    return Verdict("accepted", speedup=speedup, speedup_interval=(speedup, speedup), checks=checks, seed="1")


def fill(path: Path, count: int) -> None:
    """Rows as `Archive.record` writes them, but many at once."""
    Archive(path).close()
    db, rng = sqlite3.connect(path, isolation_level=None), random.Random(0)
    db.execute("BEGIN")
    tasks = [task(number) for number in range(TASKS)]
    for number, one in enumerate(tasks, 1):
        values = (number, one.source_hash, one.model, one.device_name, one.path, 1.0, json.dumps(one.to_json()))
        db.execute("INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    verdicts = [verdict(rng) for _ in range(1000)]
    stored = [json.dumps(one.to_json()) for one in verdicts]

    def runs() -> Iterator[tuple[object, ...]]:
        for number in range(0, count, RUN):
            run = f"run-{number:08d}"
            yield (
                run,
                number // RUN % TASKS + 1,
                "/w/m.py",
                "playbook",
                "cpu",
                "",
                float(number),
                number + 49.0,
                "done",
                "c01",
                2.0,
            )

    def candidates() -> Iterator[tuple[object, ...]]:
        for number in range(count):
            source = code(number)
            yield (
                f"run-{number // RUN * RUN:08d}", f"c{number % RUN:02d}", number % RUN // 4 + 1, "playbook", "fusion",
                '["fusion"]', "[]", source, source_hash(source), source, float(number), "", "",
            )  # fmt: skip

    def judged() -> Iterator[tuple[object, ...]]:
        for number in range(count):
            one, text = verdicts[number % 1000], stored[number % 1000]
            yield (
                f"run-{number // RUN * RUN:08d}", f"c{number % RUN:02d}", one.verdict, one.category, one.speedup, 1,
                1.0, float(number), text, number // RUN % TASKS + 1,
            )  # fmt: skip

    db.executemany(f"INSERT INTO runs VALUES ({','.join('?' * 11)})", runs())
    db.executemany(f"INSERT INTO candidates VALUES ({','.join('?' * 13)})", candidates())
    db.executemany(f"INSERT INTO verdicts VALUES ({','.join('?' * 10)})", judged())
    kept = ((f"run-{n // RUN * RUN:08d}", f"c{n % RUN:02d}", "kept", "", float(n)) for n in range(0, count, 200))
    db.executemany("INSERT INTO decisions (run, candidate, decision, path, made) VALUES (?, ?, ?, ?, ?)", kept)
    db.execute("COMMIT")
    db.close()


def timed(what: Callable[[], object], times: int = 50) -> str:
    took = []
    for _ in range(times):
        start = time.perf_counter()
        what()
        took.append((time.perf_counter() - start) * 1000)
    return f"median {statistics.median(took):8.2f} ms, longest {max(took):8.2f} ms of {times}"


def opened(path: Path) -> str:
    took = [
        float(subprocess.run([sys.executable, "-c", _OPEN, path], capture_output=True, text=True, check=True).stdout)
        for _ in range(7)
    ]
    return f"median {statistics.median(took) * 1000:8.2f} ms, longest {max(took) * 1000:8.2f} ms of 7"


def age(path: Path) -> None:
    """Makes it an archive of version 4."""
    db = sqlite3.connect(path)
    db.executescript(
        "DROP INDEX exemplars_of_task; DROP INDEX fastest_of_task; DROP INDEX runs_by_start;"
        "ALTER TABLE verdicts DROP COLUMN task;"
        "CREATE INDEX exemplars_by_speed ON verdicts (run, speedup) WHERE verdict = 'accepted' AND drop_in;"
        "PRAGMA user_version = 4"
    )
    db.close()


def measure(path: Path, count: int) -> None:
    start = time.perf_counter()
    fill(path, count)
    print(f"{count} candidates, {path.stat().st_size / 1e9:.2f} GB, made in {time.perf_counter() - start:.0f} s")
    print("open                ", opened(path))
    archive, rng = Archive(path), random.Random(1)

    def choose() -> None:
        one = task(rng.randrange(TASKS))
        chosen = exemplars.choose(archive.pool(one, "new"), ExemplarOptions(), rng.getrandbits(31))
        assert len(archive.whole(chosen)) == 2

    print("exemplars           ", timed(choose, 200))
    print("history, newest page", timed(lambda: page_of_runs(archive, before=None)))
    print("history, scrolled   ", timed(lambda: page_of_runs(archive, before=rng.random() * count)))
    archive.close()
    age(path)
    start = time.perf_counter()
    Archive(path).close()
    print(f"update               {time.perf_counter() - start:.1f} s, once")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path, metavar="FILE.db")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(options.keep or Path(folder) / "archive.db", options.candidates)


if __name__ == "__main__":
    main()
