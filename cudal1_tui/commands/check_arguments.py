"""The command line of `cudal1-tui check`."""

from __future__ import annotations

from pathlib import Path

from cudal1_tui import arguments
from cudal1_tui.arguments import Parser


def check_parser() -> Parser:
    parser = Parser(
        prog="cudal1-tui check",
        usage="cudal1-tui check PATH... [options]",
        description="Judges every accepted file again, against the reference that its header names.",
        epilog="exit status: 0 all are right and none is slower than its reference, 1 some are not, 2 wrong usage, "
        "3 the referee itself failed",
        allow_abbrev=False,
    )
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", type=Path, help="accepted files, references, or folders of them"
    )
    parser.add_argument("--json", action="store_true", help="print exactly one JSON object")
    parser.add_argument("--renew", action="store_true", help="write the new figure, or the mark, into each header")
    arguments.add_device_and_model(parser)
    arguments.add_limits_and_allowances(parser)
    return parser
