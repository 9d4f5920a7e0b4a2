"""Code as lines of coloured pieces: Python by Pygments, answers still being written, and differences."""

from __future__ import annotations

import re
from functools import lru_cache

from cudal1_tui.plain import clean, fit

Piece = tuple[str, str]  # name of a theme colour, text without line breaks
Line = tuple[Piece, ...]

_COLOURED = 200_000  # characters; longer text is shown plain
_COMPARED = 4_000  # lines a side; more would keep the screen waiting
_CODE_START = re.compile(r"(import |from |class |def |@|\"\"\"|''')")
_INKS = (
    ("Comment", "code-comment"), ("Literal.String", "code-string"), ("Literal.Number", "code-number"),
    ("Keyword", "code-keyword"), ("Operator.Word", "code-keyword"), ("Operator", "code-operator"),
    ("Punctuation", "code-operator"), ("Name.Decorator", "code-decorator"), ("Name.Function", "code-name"),
    ("Name.Class", "code-name"), ("Name.Builtin", "code-builtin"),
)  # fmt: skip


@lru_cache(maxsize=64)
def python_lines(code: str) -> tuple[Line, ...]:
    """Coloured lines of Python source; foreign control characters are gone."""
    text = clean(code)
    if len(text) > _COLOURED:
        return plain_lines(text)
    lines: list[list[Piece]] = [[]]
    for kind, value in _lexer().get_tokens(text):
        name = _ink(str(kind))
        first, *others = value.split("\n")
        if first:
            lines[-1].append((name, first))
        for part in others:
            lines.append([(name, part)] if part else [])
    if not lines[-1]:
        lines.pop()
    return tuple(tuple(line) for line in lines)


def plain_lines(text: str, name: str = "foreground") -> tuple[Line, ...]:
    """Lines in one colour."""
    return tuple(((name, line),) if line else () for line in clean(text).split("\n"))


class Growing:
    """An answer while it is written: finished lines are coloured once, only the last is done again.

    Text outside of ``` fences is prose, unless the answer begins as code. Multi-line strings may get the
    wrong colours until the candidate is written and `python_lines` sees the whole.
    """

    def __init__(self) -> None:
        self.text = ""
        self.lines: list[Line] = []
        self._tail = ""
        self._code: bool | None = None  # None until the first line with something in it

    def append(self, text: str) -> int:
        """Adds text; returns the number of the first line that changed."""
        self.text += text
        changed = max(len(self.lines) - 1, 0)
        *finished, self._tail = (self._tail + text).replace("\r\n", "\n").split("\n")
        if self.lines:
            self.lines.pop()
        for line in finished:
            self.lines.append(self._line(line))
            if line.lstrip().startswith("```"):
                self._code = not self._code
        self.lines.append(self._line(self._tail))
        return changed

    def _line(self, line: str) -> Line:
        if self._code is None and line.strip() and not line.lstrip().startswith("```"):
            self._code = bool(_CODE_START.match(line))
        if not self._code or line.lstrip().startswith("```"):
            return plain_lines(line, "muted")[0]
        return python_lines(line)[0] if line.strip() else ()


@lru_cache(maxsize=16)
def diff_lines(before: str, candidate: str, name: str = "reference") -> tuple[Line, ...]:
    """A unified difference from `before`, which `name` names."""
    import difflib

    old, new = clean(before).splitlines(), clean(candidate).splitlines()
    if max(len(old), len(new)) > _COMPARED:
        return plain_lines("Too long to compare here.", "muted")
    found = list(difflib.unified_diff(old, new, name, "candidate", lineterm="", n=3))
    if not found:
        return plain_lines(f"The same text as the {name}.", "muted")
    return tuple(((_diff_ink(line), line),) for line in found)


SIDES = 120  # columns from which a difference is shown side by side


@lru_cache(maxsize=16)
def side_lines(before: str, candidate: str, name: str, width: int) -> tuple[Line, ...]:
    """The difference with both sides whole in `width` cells, `before` on the left; long lines are cut with `…`."""
    import difflib

    old, new = clean(before).splitlines(), clean(candidate).splitlines()
    if max(len(old), len(new)) > _COMPARED or old == new:
        return diff_lines(before, candidate, name)
    half = (width - 3) // 2
    lines: list[Line] = [(("diff-place", fit(name, half)), ("muted", " │ "), ("diff-place", "candidate"))]
    for kind, first, last, start, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for offset in range(max(last - first, end - start)):
            left = old[first + offset] if first + offset < last else ""
            right = new[start + offset] if start + offset < end else ""
            same = kind == "equal"
            removed = "foreground" if same else "diff-removed"
            added = "foreground" if same else "diff-added"
            marks = (
                ("  ", "  ")
                if same
                else ("- " if first + offset < last else "  ", "+ " if start + offset < end else "  ")
            )
            lines.append(
                ((removed, fit(marks[0] + left, half)), ("muted", " │ "), (added, fit(marks[1] + right, half).rstrip()))
            )
    return tuple(lines)


def _diff_ink(line: str) -> str:
    if line.startswith(("@@", "---", "+++")):
        return "diff-place"
    return {"+": "diff-added", "-": "diff-removed"}.get(line[:1], "foreground")


@lru_cache(maxsize=256)
def _ink(kind: str) -> str:
    word = kind.removeprefix("Token.")
    return next((name for start, name in _INKS if word.startswith(start)), "foreground")


@lru_cache(maxsize=1)
def _lexer():  # type: ignore[no-untyped-def]  # imported at the first use: Pygments costs start-up time
    from pygments.lexers.python import PythonLexer

    return PythonLexer(stripnl=False, ensurenl=True)
