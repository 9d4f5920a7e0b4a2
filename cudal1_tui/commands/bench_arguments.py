"""The command line of `cudal1-tui bench`: a suite, or `compare` and `report` over results."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from cudal1_core.policies import POLICIES as ALL_POLICIES

from cudal1_tui import arguments
from cudal1_tui.arguments import Parser

POLICIES = tuple(name for name in ALL_POLICIES if name != "replay")  # --candidates plays what exists


def suite_parser() -> Parser:
    parser = Parser(
        prog="cudal1-tui bench",
        usage="cudal1-tui bench SUITE [--candidates PATH | --policy NAME] [options]\n"
        "       cudal1-tui bench report RESULTS.jsonl... [options]\n"
        "       cudal1-tui bench compare A.jsonl B.jsonl... [options]",
        description="Judges every candidate of a suite and makes the table. A bench that was stopped or killed goes "
        "on when it is started again.",
        epilog="exit status: 0 every row is there, 1 some are not (time was up, or the referee failed on them), "
        "2 wrong usage, 3 the program itself failed",
        allow_abbrev=False,
    )
    parser.add_argument(
        "suite",
        metavar="SUITE",
        type=Path,
        help="a KernelBench checkout, JSON Lines with ref_code (the CUDA-L1 release), a folder of references, or one",
    )
    choice = parser.add_argument_group("which tasks")
    choice.add_argument("--level", type=levels, default=(), metavar="N,...", help="levels: 1,2")
    choice.add_argument("--ids", type=ids, default=(), metavar="ID,...", help="tasks: L1/12,L2/96 or names of files")
    choice.add_argument("--shuffle", type=int, metavar="SEED", help="in a random order, for a random part with --share")
    choice.add_argument("--limit", type=arguments.count, metavar="N", help="the first N of them")
    choice.add_argument("--share", type=share, default=(1, 1), metavar="K/N", help="the K-th of N parts, spread evenly")
    what = parser.add_argument_group("which candidates (those of the suite, if nothing is said)")
    what.add_argument("--candidates", type=Path, metavar="PATH", help="a folder, JSON Lines, or one .py file")
    what.add_argument("--policy", choices=POLICIES, help="have candidates written")
    what.add_argument("--rounds", type=arguments.count, default=1, metavar="N", help="rounds a task (1)")
    what.add_argument("--group", type=arguments.count, default=4, metavar="N", help="candidates a round (4)")
    what.add_argument("--seed", type=int, default=0, metavar="N", help="steers the policy, never the referee (0)")
    what.add_argument("--model", metavar="NAME", help="for openai, transformers, vllm: the model")
    what.add_argument("--url", metavar="URL", help="for openai: the server, such as http://localhost:8000/v1")
    what.add_argument("--adapter", type=Path, metavar="DIR", help="for transformers and vllm: a LoRA adapter")
    what.add_argument(
        "--repair", type=arguments.whole, default=0, metavar="N", help="times a rejected one goes back (0)"
    )
    what.add_argument("--examine", action="store_true", help="look for flaws also in references without code")
    judging = parser.add_argument_group("judging")
    judging.add_argument(
        "--device", type=devices, default="auto", metavar="DEVICE", help="auto, cpu, all, or GPUs: cuda:0,cuda:1 (auto)"
    )
    judging.add_argument(
        "--ahead", type=arguments.count, metavar="N", help="referees a GPU, which build ahead (by cores)"
    )
    judging.add_argument("--class", dest="class_name", metavar="NAME", help="class in the references, if not Model")
    arguments.add_limits_and_allowances(judging)
    judging.add_argument(
        "--timing", type=arguments.positive, default=6.0, metavar="S", help="most seconds of timing a candidate (6)"
    )
    arguments.add_baselines(judging)
    run = parser.add_argument_group("results")
    run.add_argument("--out", type=Path, metavar="FILE.jsonl", help="rows go here; the reports lie beside it")
    run.add_argument("--budget", type=arguments.seconds, metavar="TIME", help="begin nothing more after this long: 9m")
    run.add_argument(
        "--again",
        choices=("failed", "changed", "all"),
        help="judge again what has a row: where the referee failed, where it was another version of it, or all",
    )
    return parser


def report_parser() -> Parser:
    parser = Parser(
        prog="cudal1-tui bench report",
        description="Writes the table of results. Several files are parts of one table.",
        allow_abbrev=False,
    )
    parser.add_argument("results", metavar="RESULTS.jsonl", type=Path, nargs="+", help="what benches wrote")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help=".md, .html, .json or .csv; all four beside the results, if not said"
    )
    parser.add_argument("--title", metavar="TEXT", help="first line of the report")
    parser.add_argument(
        "--repeat", type=Path, metavar="FILE", help="results of a second run, to say how well they agree"
    )
    return parser


def compare_parser() -> Parser:
    parser = Parser(
        prog="cudal1-tui bench compare",
        description="Puts results of the same suite side by side; each is compared with the first.",
        epilog="exit status: 0 nothing got worse, 1 a task is slower or no longer accepted, 2 wrong usage",
        allow_abbrev=False,
    )
    parser.add_argument("results", metavar="RESULTS.jsonl", type=Path, nargs="+", help="two or more")
    parser.add_argument(
        "--tolerance", type=percent, default=0.02, metavar="PERCENT", help="changes up to this are none (2)"
    )
    parser.add_argument("--all", action="store_true", help="every task, not only those that changed")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def levels(text: str) -> tuple[int, ...]:
    return tuple(arguments.count(part) for part in text.split(","))


def ids(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def share(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a part such as 1/4, 2/4, 3/4 or 4/4")
    return int(match[1]), int(match[2])


def devices(text: str) -> str:
    if not re.fullmatch(r"auto|all|cpu|cuda(:\d+)?(,cuda(:\d+)?)*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not auto, all, cpu, or GPUs such as cuda:0,cuda:1")
    return text


def percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of percent")
    return value / 100
