"""Breaks long generated statements at the commas of a call, as a formatter would."""

from __future__ import annotations

import ast

WIDTH = 100


def wrapped(statement: str, indent: int) -> str:
    """The statement over several lines where it is too long; otherwise, or where that fails, as it was."""
    text = "\n".join(_break(statement, indent))
    try:
        same = ast.dump(ast.parse(text)) == ast.dump(ast.parse(statement))
    except SyntaxError:
        same = False
    return text if same else statement


def _break(line: str, indent: int) -> list[str]:
    start = len(line) - len(line.lstrip())
    if len(line) + indent <= WIDTH:
        return [line]
    call = _last_call(line)
    if call is None:
        return [line]
    first, last = call
    pad = " " * (start + 4)
    inside = line[first + 1 : last]
    if len(pad) + len(inside) + indent <= WIDTH:
        return [line[: first + 1], pad + inside, " " * start + line[last:]]
    parts = _parts(inside)
    broken = [piece for part in parts for piece in _break(f"{pad}{part},", indent)]
    return [line[: first + 1], *broken, " " * start + line[last:]]


def _last_call(line: str) -> tuple[int, int] | None:
    """Brackets of the last outermost call with arguments."""
    depth, opened, found = 0, 0, None
    for place, sign in enumerate(line):
        if sign in "([{":
            opened = place if depth == 0 else opened
            depth += 1
        elif sign in ")]}":
            depth -= 1
            called = line[opened] == "(" and opened > 0 and (line[opened - 1].isalnum() or line[opened - 1] == "_")
            if depth == 0 and called and place > opened + 1:
                found = (opened, place)
    return found


def _parts(inside: str) -> list[str]:
    parts, depth, begin = [], 0, 0
    for place, sign in enumerate(inside):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            parts.append(inside[begin:place].strip())
            begin = place + 1
    parts.append(inside[begin:].strip())
    return [part for part in parts if part]
