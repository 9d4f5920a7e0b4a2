"""Trains the same model several ways and puts the held-out results side by side.

    python benchmarks/training.py --out DIR --exemplars bucket,none,random [--seeds 0,1] [options of `cudal1-tui train`]

Stages one and two are played once; stage three starts from them for each choice of exemplars and each seed. What is
printed is Markdown: the report's figures after each stage and variant, the curve of stage three, and its cost.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

POINTS = 8  # of the curve


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of all trainings")
    parser.add_argument("--exemplars", default="bucket,none,random")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--only-report", action="store_true", help="train nothing; print what is there")
    options, rest = parser.parse_known_args()
    first = options.out / "start"
    variants = [(how, seed) for how in options.exemplars.split(",") for seed in options.seeds.split(",")]
    if not options.only_report:
        for stage in ("sft", "self"):
            _train(stage, first, rest)
        begin = _start(first)
        for how, seed in variants:
            _train("rl", options.out / f"{how}-{seed}", [*rest, "--exemplars", how, "--seed", seed, *begin])
    print(_table(first, [(f"{how} (seed {seed})", options.out / f"{how}-{seed}") for how, seed in variants]))
    return 0


def _train(stage: str, out: Path, words: list[str]) -> None:
    subprocess.run([sys.executable, "-m", "cudal1_tui", "train", stage, "--out", str(out), *words], check=True)


def _start(first: Path) -> list[str]:
    """The words that make stage three begin where stage two ended."""
    stages = json.loads((first / "state.json").read_text("utf-8"))["stages"]
    last = stages["self"]
    return ["--model", last["base"], *(["--adapter", last["adapter"]] if last["adapter"] else [])]


def _table(first: Path, variants: list[tuple[str, Path]]) -> str:
    lines = [
        "| after | tasks | has code | builds | right | > 1.01x | mean | geomean | median | right answers |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [_line(stage["stage"], stage) for stage in _report(first)["stages"]]
    costs = []
    for name, folder in variants:
        report = _report(folder)
        lines += [_line(f"rl, {name}", stage) for stage in report["stages"] if stage["stage"] == "rl"]
        seconds = report["seconds"]
        judging, training = seconds.get("rl judging", 0.0), seconds.get("rl training", 0.0)
        waited = f"{judging / (judging + training):.0%}" if judging + training else "–"
        costs.append(f"| {name} | {(judging + training) / 3600:.2f} | {waited} | {_curve(folder)} |")
    lines += ["", "| variant | hours of stage three | waits for the referee | speedup earned, over the steps |"]
    return "\n".join([*lines, "| --- | --- | --- | --- |", *costs])


def _line(name: str, stage: dict[str, Any]) -> str:
    speeds = " | ".join(f"{stage[key]:.2f}x" if stage[key] else "–" for key in ("mean", "geomean", "median"))
    counts = " | ".join(str(stage[key]) for key in ("tasks", "has_code", "builds", "right", "faster"))
    return f"| {name} | {counts} | {speeds} | {stage['right_answers']}/{stage['answers']} |"


def _report(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / "report" / "report.json").read_text("utf-8"))
    return data


def _curve(folder: Path) -> str:
    """Mean raw reward in equal parts of the steps."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text("utf-8").splitlines()]
    values = [row["speedup"] for row in rows if row["stage"] == "rl" and "speedup" in row]
    size = max(1, -(-len(values) // POINTS))
    return " ".join(f"{statistics.fmean(values[at : at + size]):.2f}" for at in range(0, len(values), size)) or "–"


if __name__ == "__main__":
    sys.exit(main())
