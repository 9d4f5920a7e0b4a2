"""The command lines over what is stored: `history`, `resume`, `prune`."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from cudal1_tui import arguments
from cudal1_tui.arguments import Parser

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def history_parser() -> Parser:
    parser = Parser(
        prog="cudal1-tui history",
        description="Lists runs, newest first; of one run its candidates and decisions.",
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", nargs="?", help="id of a run, or how it begins")
    parser.add_argument("--reference", type=Path, metavar="FILE", help="runs of this reference only")
    parser.add_argument("--limit", type=arguments.count, default=20, metavar="N", help="runs to list (20)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def resume_parser() -> Parser:
    parser = Parser(
        prog="cudal1-tui resume",
        usage="cudal1-tui resume [RUN] [options of a run]",
        description="Goes on with a run: what it found and what was decided is there again, what was written but not "
        "judged is judged, and rounds that are left are played.",
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", nargs="?", help="id, folder or events.jsonl of a run (the newest)")
    arguments.add_work(parser)
    screen = parser.add_argument_group("screen and output")
    arguments.add_screen(screen)
    arguments.add_out(screen)
    return parser


def prune_parser() -> Parser:
    parser = Parser(
        prog="cudal1-tui prune",
        description="Deletes the oldest runs until .cudal1 takes no more than a size. Runs with something accepted or "
        "fed stay, and so do runs that go on.",
        allow_abbrev=False,
    )
    parser.add_argument("--max-size", type=size, required=True, metavar="SIZE", help="such as 500M or 2G")
    parser.add_argument("--decided", action="store_true", help="delete runs with decisions too, after the others")
    parser.add_argument("--dry-run", action="store_true", help="say what would be deleted")
    return parser


def size(text: str) -> int:
    """Bytes: `500M`, `2G`, `1.5 GB`, `800000`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 500M or 2G")
    return int(float(match[1]) * _UNITS[match[2]])
