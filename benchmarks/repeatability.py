"""How well speedups repeat: the referee beside two other ways to measure, each judging in a process of its own.

    python benchmarks/repeatability.py [--device cpu] [--judgings 10] [--equal 50] [--out repeatability.jsonl]
    python benchmarks/repeatability.py --device cuda --released h100.jsonl    # and L1/36, L2/86, L2/91 of CUDA-L1
    python benchmarks/repeatability.py --table                                # of what is there

A relu, a softmax and a product, at about 10 µs, 100 µs, 1 ms and 10 ms a call, each written twice. Judged are the one
against the other, and the one against itself, where the truth is 1. `do_bench` follows triton's: a cache's worth of
memory is written before each call, 25 ms of warming up, 100 ms of calls, their mean. `kernelbench` follows
KernelBench's default: the same inputs, 3 calls of warming up, 10 timed one by one with 256 MiB written in between, the
first dropped, means rounded to three digits. On a GPU both time with events, on a processor with its clock.

Every judging is a row of FILE.jsonl as soon as it is done, and a row that is there is not judged again, so a run may be
broken off and taken up. The order is shuffled, so that what changes over the hours touches all alike.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

LENGTHS_MS = (0.01, 0.1, 1.0, 10.0)
METHODS = ("referee", "do_bench", "kernelbench")
RELEASED = ("L1/36", "L2/86", "L2/91")
FLUSHED = 256 << 20  # bytes
WARM_SECONDS, TIMED_SECONDS = 0.025, 0.1  # do_bench
WARM_UPS, TRIALS = 3, 10  # KernelBench

MODULE = """
import torch
class {name}(torch.nn.Module):
    def forward(self, {names}):
        {body}
"""
INPUTS = """
def get_inputs():
    return [{inputs}]
def get_init_inputs():
    return []
"""


@dataclass(frozen=True)
class Subject:
    """A module written twice; `inputs` in terms of `n`, which grows with the length aimed at."""

    names: str
    reference: str
    candidate: str
    inputs: str
    smallest: int
    power: float  # of n, by which the time grows


SUBJECTS = {
    "relu": Subject("x", "return torch.where(x > 0, x, 0.0)", "return torch.relu(x)", "torch.randn({n})", 1024, 1),
    "softmax": Subject(
        "x",
        "e = torch.exp(x - x.amax(-1, keepdim=True)); return e / e.sum(-1, keepdim=True)",
        "return torch.softmax(x, -1)",
        "torch.randn({n}, 512)",
        1,
        1,
    ),
    "matmul": Subject(
        "x, y, z",
        "return x @ y + z",
        "return torch.addmm(z, x, y)",
        "torch.randn({n}, {n}), torch.randn({n}, {n}), torch.randn({n}, {n})",
        16,
        3,
    ),
}


@dataclass(frozen=True)
class Row:
    """One judging."""

    subject: str  # "relu 0.1 ms", "L1/36"
    equal: bool  # the reference against itself
    method: str
    run: int
    speedup: float | None  # None where there is no figure
    low: float | None
    high: float | None
    reference_ms: float | None
    seconds: float  # of the judging with all its processes
    why: str = ""  # there is no figure

    @property
    def key(self) -> tuple[str, bool, str, int]:
        return self.subject, self.equal, self.method, self.run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--judgings", type=int, default=10, help="of each pair by each method")
    parser.add_argument("--equal", type=int, default=50, help="self-comparisons a subject, by the referee alone")
    parser.add_argument("--only", default="", help="subjects whose name begins so")
    parser.add_argument("--released", type=Path, help="JSON Lines of the CUDA-L1 release")
    parser.add_argument("--out", type=Path, default=Path("repeatability.jsonl"))
    parser.add_argument("--table", action="store_true", help="judge nothing")
    parser.add_argument("--measure", nargs=3, metavar=("METHOD", "REFERENCE", "CANDIDATE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*options.measure, options.device)))
        return
    if not options.table:
        judge_all(options)
    print(table(read(options.out)))


def judge_all(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="repeatability-") as name:
        pairs = {**written(Path(name), options), **released(Path(name), options)}
        pairs = {subject: files for subject, files in pairs.items() if subject.startswith(options.only)}
        done = {row.key for row in read(options.out)}
        todo = [(s, False, m, run) for s in pairs for m in METHODS for run in range(options.judgings)]
        todo += [(s, True, "referee", run) for s in pairs for run in range(options.equal)]
        todo = [key for key in todo if key not in done]
        random.shuffle(todo)
        for number, (subject, equal, method, run) in enumerate(todo, 1):
            reference, candidate = pairs[subject]
            other = equal_code(reference) if equal else candidate
            row = judged(subject, equal, method, run, reference, other, options.device)
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(row)) + "\n")
            told = f"{row.speedup:.3f}x" if row.speedup else row.why[:60]
            print(f"{number}/{len(todo)} {subject} {method}{' equal' if equal else ''}: {told}", file=sys.stderr)


def written(folder: Path, options: argparse.Namespace) -> dict[str, tuple[Path, Path]]:
    """(reference, candidate) by subject and length; sizes once found are kept beside the rows."""
    kept = options.out.with_suffix(".sizes.json")
    sizes: dict[str, int] = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    pairs = {}
    for name, subject in SUBJECTS.items():
        for length in LENGTHS_MS:
            title = f"{name} {length:g} ms"
            if not title.startswith(options.only):
                continue
            if title not in sizes:
                sizes[title] = size_for(folder, subject, length, options.device)
                kept.write_text(json.dumps(sizes, indent=1) + "\n", "utf-8")
            pairs[title] = pair_of(folder / title.replace(" ", "_"), subject, sizes[title])
    return pairs


def pair_of(folder: Path, subject: Subject, n: int) -> tuple[Path, Path]:
    folder.mkdir(exist_ok=True)
    reference, candidate = folder / "reference.py", folder / "candidate.py"
    body = MODULE.format(name="Model", names=subject.names, body=subject.reference)
    reference.write_text(body + INPUTS.format(inputs=subject.inputs.format(n=n)), "utf-8")
    candidate.write_text(MODULE.format(name="ModelNew", names=subject.names, body=subject.candidate), "utf-8")
    return reference, candidate


def size_for(folder: Path, subject: Subject, length: float, device: str) -> int:
    """The n at which the reference takes about `length` ms: doubled up to it, then by its power between the two."""
    n, before = subject.smallest, (0, 0.0)
    while True:
        files = pair_of(folder / "size", subject, n)
        ms = run_measure("alone", *files, device)["reference_ms"]
        if ms >= length:
            break
        n, before = n * 2, (n, ms)
    if not before[0]:
        return n
    return max(before[0], min(n, round(n * (length / ms) ** (1 / subject.power))))


def released(folder: Path, options: argparse.Namespace) -> dict[str, tuple[Path, Path]]:
    """Pairs of the CUDA-L1 release."""
    pairs = {}
    for line in options.released.read_text("utf-8").splitlines() if options.released else []:
        row = json.loads(line)
        title = f"L{row['level_id']}/{row['task_id']}"
        if title in RELEASED and row["custom_code"]:
            place = folder / title.replace("/", "_")
            place.mkdir()
            (place / "reference.py").write_text(row["ref_code"], "utf-8")
            (place / "candidate.py").write_text(row["custom_code"], "utf-8")
            pairs[title] = place / "reference.py", place / "candidate.py"
    return pairs


def equal_code(reference: Path) -> Path:
    path = reference.with_name("equal.py")
    path.write_text(reference.read_text("utf-8") + "\n\nclass ModelNew(Model):\n    pass\n", "utf-8")
    return path


def judged(subject: str, equal: bool, method: str, run: int, reference: Path, candidate: Path, device: str) -> Row:
    start = time.monotonic()
    found = by_referee(reference, candidate, device) if method == "referee" else {}
    if method != "referee":
        found = run_measure(method, reference, candidate, device)
    names = ("speedup", "low", "high", "reference_ms")
    figures = {name: found.get(name) for name in names}
    return Row(subject, equal, method, run, seconds=time.monotonic() - start, why=found.get("why", ""), **figures)


def by_referee(reference: Path, candidate: Path, device: str) -> dict[str, Any]:
    """The figure before it is rounded, and before what is not told from 1 becomes 1."""
    words = [sys.executable, "-m", "cudal1_tui", "verify", str(reference), str(candidate), "--device", device, "--json"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    try:
        verdict = json.loads(ended.stdout)
    except ValueError:
        return {"why": ended.stderr[-300:]}
    if verdict["verdict"] != "accepted" or verdict["candidate_ms"] is None:
        return {"why": f"{verdict['category']}: {verdict['reason']}"}
    low, high = verdict["speedup_interval"]
    told = verdict["speedup"]
    plain = verdict["reference_ms"] / verdict["candidate_ms"] if told == 1.0 else told
    return {"speedup": min(max(plain, low), high), "low": low, "high": high, "reference_ms": verdict["reference_ms"]}


def run_measure(method: str, reference: Path, candidate: Path, device: str) -> dict[str, Any]:
    words = [sys.executable, __file__, "--device", device, "--measure", method, str(reference), str(candidate)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if ended.returncode:
        return {"why": ended.stderr[-300:], "reference_ms": float("nan")}
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def measure(method: str, reference: str, candidate: str, device: str) -> dict[str, float]:
    """In a process of its own: both modules one after the other, by one of the other methods."""
    import torch

    def load(path: str, name: str) -> Any:
        spec = importlib.util.spec_from_file_location(f"measured_{name}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module, getattr(module, name)

    home, model = load(reference, "Model")
    init = home.get_init_inputs()
    made = []
    for kind in (model, load(candidate, "ModelNew")[1]):
        torch.manual_seed(42)
        made.append(kind(*init).to(device))
    torch.manual_seed(42)
    inputs = [value.to(device) if isinstance(value, torch.Tensor) else value for value in home.get_inputs()]
    way = {"do_bench": do_bench, "kernelbench": kernelbench, "alone": alone}[method]
    with torch.no_grad():
        one, other = (way(lambda module=module: module(*inputs), device) for module in made)
    return {"speedup": one / other, "reference_ms": one}


def do_bench(call: Callable[[], Any], device: str) -> float:
    """Mean ms a call, as triton.testing.do_bench counts."""
    call()
    begin = time.perf_counter()
    one_by_one(call, device, 5)
    each = (time.perf_counter() - begin) / 5  # with the writing in between, as there
    one_by_one(call, device, max(1, int(WARM_SECONDS / each)), flushed=0)
    return fmean(one_by_one(call, device, max(1, int(TIMED_SECONDS / each))))


def alone(call: Callable[[], Any], device: str) -> float:
    """Median ms of a call with warm caches, by which sizes are chosen."""
    one_by_one(call, device, WARM_UPS, flushed=0)
    return median(one_by_one(call, device, 25, flushed=0))


def kernelbench(call: Callable[[], Any], device: str) -> float:
    """Mean ms a call, as KernelBench counts by default."""
    one_by_one(call, device, WARM_UPS, flushed=0)
    return float(f"{fmean(one_by_one(call, device, TRIALS + 1)[1:]):.3g}")


def one_by_one(call: Callable[[], Any], device: str, count: int, flushed: int = FLUSHED) -> list[float]:
    """Milliseconds of each call, with memory written before it."""
    import torch

    cache = torch.empty(max(flushed // 4, 1), dtype=torch.int32, device=device)
    on_gpu = device != "cpu"
    times = []
    for _ in range(count):
        cache.zero_()
        if on_gpu:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call()
            end.record()
            torch.cuda.synchronize()
            times.append(float(start.elapsed_time(end)))
        else:
            begin = time.perf_counter()
            call()
            times.append((time.perf_counter() - begin) * 1e3)
    return times


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    return [Row(**json.loads(line)) for line in path.read_text("utf-8").splitlines() if line]


def table(rows: list[Row]) -> str:
    """Markdown: what each method says of each pair, and how often the interval holds 1 for equal code."""
    lines = ["| pair | reference | " + " | ".join(f"{m}: median, spread, s" for m in METHODS) + " | equal: holds 1 |"]
    lines.append("| --- " * (len(METHODS) + 3) + "|")
    for subject in dict.fromkeys(row.subject for row in sorted(rows, key=lambda row: row.subject)):
        mine = [row for row in rows if row.subject == subject]
        cells = [spread([row for row in mine if row.method == m and not row.equal]) for m in METHODS]
        times = [row.reference_ms for row in mine if row.method == "referee" and row.reference_ms]
        lines.append(
            f"| {subject} | {f'{median(times):.3g} ms' if times else '–'} | {' | '.join(cells)} | {coverage(mine)} |"
        )
    return "\n".join(lines)


def spread(rows: list[Row]) -> str:
    """`1.52x, 1.8 %, 9 s`: median, largest less smallest over the median, seconds a judging."""
    speeds = [row.speedup for row in rows if row.speedup]
    if not speeds:
        return "–"
    missing = f" ({len(rows) - len(speeds)} without a figure)" if len(speeds) < len(rows) else ""
    middle = median(speeds)
    took = median(row.seconds for row in rows)
    return f"{middle:.2f}x, {(max(speeds) - min(speeds)) / middle:.1%}, {took:.0f} s{missing}"


def coverage(rows: list[Row]) -> str:
    equal = [row for row in rows if row.equal and row.low is not None and row.high is not None]
    if not equal:
        return "–"
    holds = sum((row.low or 0) <= 1 <= (row.high or 0) for row in equal)
    return f"{holds} of {len(equal)}"


if __name__ == "__main__":
    main()
