"""How files hold code: JSON Lines with a row a line, folders in natural order, one source in other spacing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cudal1_core.errors import Cudal1Error


def read_rows(
    content: bytes, path: Path, wrong: type[Cudal1Error], *, cut: bool = False
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number of each line that is not empty, and its object. Raises `wrong`, which names file and line.

    With `cut` the last line may be torn, as a killed process leaves it. Only a line feed ends a line: U+2028 and its
    like stand in texts.
    """
    lines = content.decode("utf-8", "replace").split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError(f"it is a {type(row).__name__}")
        except ValueError as error:
            if cut and number == len(lines):
                return
            raise wrong(f"{path}:{number}: not a JSON object", str(error), "Each line must hold one.") from error
        yield number, row


def bare(source: str) -> str:
    """The same for sources that differ in trailing spaces and outer empty lines alone."""
    return "\n".join(line.rstrip() for line in source.strip().splitlines())


def natural(path: Path) -> list[tuple[int, str]]:
    """A key for sorting: 2_x.py before 10_x.py, folder by folder."""
    parts = re.findall(r"\d+|\D+", str(path))
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]
