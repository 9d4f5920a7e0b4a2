"""`cudal1-tui models`: what was trained here, from what, how it did, and the words that use it."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudal1_core.trained import Trained, trained_models
from rich.console import Console
from rich.text import Text

from cudal1_tui.words import DASH, speedup_text

if TYPE_CHECKING:
    import argparse


def main(options: argparse.Namespace) -> int:
    """0 also where there is none."""
    found = trained_models()
    if options.json:
        for model in found:
            print(json.dumps({**asdict(model), "options": model.options, "there": model.there}))
        return 0
    console = Console(highlight=False, soft_wrap=True)
    if not found:
        console.print(
            "Nothing was trained from this folder. `cudal1-tui train all --model NAME --tasks FOLDER` does it."
        )
    for model in found:
        for line, style in _lines(model):
            console.print(Text(line), style=style)
    return 0


def _lines(model: Trained) -> list[tuple[str, str]]:
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(model.at))
    head = f"{Path(model.training).name} {model.stage}  from {model.model}, {model.tasks} tasks, {day}"
    lines = [(head, "bold"), (f"  held out: {_report(model.report)}", "")]
    if not model.there:
        return [*lines, (f"  {model.place} is gone", "yellow"), ("", "")]
    return [*lines, (f"  {model.options}", ""), ("", "")]


def _report(report: dict[str, Any]) -> str:
    if not report:
        return "no report"
    faster = f", {report['faster']} faster" if report["right"] else ""
    speed = f", geomean {speedup_text(report['geomean']) if report['geomean'] else DASH}" if report["right"] else ""
    return f"{report['right']} of {report['tasks']} tasks right{faster}{speed}"
