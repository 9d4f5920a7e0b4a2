"""What the transformers policy and its child say to each other: one JSON object a line. Imports no torch.

To the child: `generate`, `cancel`, `count`, `adapter`. From it: `loading`, `ready`, `piece`, `counted`, `adapted`,
`trouble`. Each answer carries the `id` of what was asked; trouble without one ends the child.
"""

from __future__ import annotations

import json
from typing import Any

LONGEST_LINE = 1 << 24  # bytes


def line(word: str, **values: Any) -> str:
    return json.dumps({"say": word, **values}) + "\n"


def parse(text: str) -> tuple[str, dict[str, Any]]:
    """Raises ValueError for what is no message."""
    data = json.loads(text)
    if not isinstance(data, dict) or not isinstance(data.get("say"), str):
        raise ValueError(f"not a message: {text[:100]!r}")
    return data.pop("say"), data
