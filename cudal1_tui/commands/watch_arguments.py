"""The command line of `cudal1-tui watch`."""

from __future__ import annotations

from pathlib import Path

from cudal1_tui import arguments
from cudal1_tui.arguments import Parser


def watch_parser() -> Parser:
    parser = Parser(
        prog="cudal1-tui watch",
        usage="cudal1-tui watch PATH... [options of a run]",
        description="Reads a reference again whenever it is saved, and optimises it. Files that are named are worked "
        "on at once, those in folders when they are saved.",
        epilog="exit status: 2 a path cannot be watched, 3 the program itself failed, 130 and 143 stopped",
        allow_abbrev=False,
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path, help="a reference, or a folder of them")
    watching = parser.add_argument_group("watching")
    watching.add_argument(
        "--poll",
        nargs="?",
        type=arguments.positive,
        const=1.0,
        metavar="S",
        help="look at the files every S seconds (1) in place of the system's notices; network folders are anyway",
    )
    arguments.add_work(parser)
    arguments.add_screen(parser.add_argument_group("screen and output"))
    parser.set_defaults(out=None)
    return parser
