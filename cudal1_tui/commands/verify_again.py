"""`cudal1-tui verify --receipt FILE`: judges the pair of a receipt once more and says whether it agrees."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cudal1_core.errors import UsageError
from cudal1_core.referee.receipt import Receipt, differences, lay_out_copy, read_receipt

from cudal1_tui import arguments
from cudal1_tui.commands.verify import interruptible

if TYPE_CHECKING:
    import argparse

    from cudal1_core.verdict import Verdict

ROUGH = 0.1  # half interval, relative, from which two figures agree without saying much
_OWN = ("json", "explain", "receipt")  # all that may stand beside the receipt; the rest is in it


def main(options: argparse.Namespace) -> int:
    """Exit status 0 it agrees, 1 it does not, 2 it cannot be judged here, 3 the referee itself failed."""
    _check(options)
    receipt = read_receipt(options.receipt)
    with tempfile.TemporaryDirectory(prefix="cudal1-receipt-") as folder:
        reference, candidate = _files(receipt, Path(folder))
        now, status = _judged(receipt, reference, candidate)
    found = differences(receipt.verdict, now)
    if now.verdict == "unjudgeable" and receipt.verdict.verdict != "unjudgeable":
        status = status if status > 3 else 2
    elif status <= 3:
        status = 1 if found else 0
    if options.json:
        told = {
            "agrees": not found,
            "differences": found,
            "then": receipt.verdict.to_json(),
            "now": now.to_json(),
            "then_at": receipt.at,
        }
        print(json.dumps(told, allow_nan=False))
    if not options.json or options.explain:
        _print(receipt, now, found, explain=options.explain, to_errors=options.json)
    return status


def _check(options: argparse.Namespace) -> None:
    if options.receipt is None:
        raise UsageError(
            "cudal1-tui verify: the following arguments are required: REFERENCE.py CANDIDATE.py",
            "Or give the receipt of an earlier verdict: cudal1-tui verify --receipt FILE",
        )
    if not options.receipt.is_file():
        raise UsageError(
            f"--receipt {options.receipt}: no such file",
            "Without REFERENCE.py and CANDIDATE.py it names the receipt of a pair that is to be judged again.",
        )
    untouched = vars(arguments.verify_parser().parse_args([]))
    for name, value in vars(options).items():
        if name not in _OWN and value != untouched[name]:
            flag = name.replace("_", "-")
            raise UsageError(f"--{flag} has no meaning here", "The receipt's own options are used.")


def _files(receipt: Receipt, folder: Path) -> tuple[Path, Path]:
    """The pair where it lies, or the receipt's copy of it where a file has changed or is gone."""
    sources = {Path(receipt.reference.path): receipt.reference, Path(receipt.candidate.path): receipt.candidate}
    sources |= {receipt.root / helper.path: helper for helper in receipt.helpers}
    changed = [path.name for path, source in sources.items() if not source.lies_at(path)]
    if not changed:
        return Path(receipt.reference.path), Path(receipt.candidate.path)
    many = "have" if len(changed) > 1 else "has"
    print(f"{', '.join(changed)} {many} changed since, so the receipt's copy of the pair is judged.", file=sys.stderr)
    return lay_out_copy(receipt, folder)


def _judged(receipt: Receipt, reference: Path, candidate: Path) -> tuple[Verdict, int]:
    from cudal1_core.referee.verify import verify

    judgement, status = interruptible(verify(reference, candidate, receipt.options))
    return judgement.verdict, status


def _print(receipt: Receipt, now: Verdict, found: list[str], *, explain: bool, to_errors: bool) -> None:
    from rich.console import Console

    from cudal1_tui.plain import one_line
    from cudal1_tui.verdict_text import lines

    console = Console(stderr=to_errors, highlight=False, markup=False)
    at = time.strftime("%Y-%m-%d %H:%M", time.localtime(receipt.at))
    console.print(f"then, {at}, on {one_line(str(receipt.verdict.device.get('name', 'no device')))}:", style="dim")
    for line in lines(receipt.verdict, explain=False)[:2]:
        console.print(line, soft_wrap=True)
    console.print("now:", style="dim")
    for line in lines(now, explain=explain):
        console.print(line, soft_wrap=True)
    other = receipt.verdict.device.get("name") != now.device.get("name") and not found
    told = "agrees"
    if other:
        told += " in what was decided; this is another device, so speeds are not compared"
    elif (rough := max(map(_half_interval, (receipt.verdict, now)))) > ROUGH:
        told += f", as far as can be told: a figure is unsure by {rough:.0%}"
    console.print(told if not found else f"does not agree: {one_line('; '.join(found))}", style="bold", soft_wrap=True)


def _half_interval(verdict: Verdict) -> float:
    if verdict.speedup_interval is None:
        return 0.0
    low, high = verdict.speedup_interval
    return (high - low) / (high + low)
