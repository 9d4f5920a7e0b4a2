"""Foreign text made safe to show: no escapes, no control characters."""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI, colours and cursor moves
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC, DCS, SOS, PM, APC up to their terminator
    r"|\x1b[ -/]*[0-~]",
    re.DOTALL,
)
# C0 except tab and newline, DEL, C1, line separators, marks that turn or hide text, and lone surrogates.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ud800-\udfff]"
)
TAB = 4


def clean(text: str) -> str:
    """Text of many lines without anything that a terminal would obey. Tabs become spaces."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("", _ESCAPE.sub("", text)).expandtabs(TAB)


def one_line(text: str) -> str:
    """`clean`, with every run of white space as one space."""
    return " ".join(clean(text).split())
