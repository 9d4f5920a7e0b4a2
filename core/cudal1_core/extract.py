"""The Python code out of a model's answer."""

from __future__ import annotations

import ast
import re
import textwrap

# A fence opens with three or more backticks or tildes and closes with at least as many of the same.
_FENCE = re.compile(
    r"^[ \t]*(?P<mark>`{3,}|~{3,})[ \t]*(?P<language>[\w+.#-]*)[^\n`]*\n"
    r"(?P<body>.*?)"
    r"(?:^[ \t]*(?P=mark)[`~]*[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_DEFINES = re.compile(
    r"^[ \t]*(?:class[ \t]+ModelNew\b|ModelNew[ \t]*[:=]|(?:from|import)\b.*\bas[ \t]+ModelNew\b)",
    re.MULTILINE,
)


def extract_code(text: str) -> str:
    """The source that defines `ModelNew`, with plain line ends; empty where the answer holds none.

    An answer that is Python as a whole is taken whole. Otherwise the last fence that defines `ModelNew`
    counts, closed or cut short, whatever language it names; without fences, everything from the first
    line of code on.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    if defines_model(text) and _is_python(text):
        return _tidy(text)
    fences = [textwrap.dedent(match["body"]) for match in _FENCE.finditer(text)]
    for body in reversed(fences):
        if defines_model(body):
            return _tidy(body)
    if fences or not defines_model(text):
        return ""
    return _tidy(_from_first_code_line(text))


def defines_model(source: str) -> bool:
    return _DEFINES.search(source) is not None


def _is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _from_first_code_line(text: str) -> str:
    """Drops prose in front of an answer that forgot its fence."""
    match = re.search(r"^(?:import |from \w|class |def |@|\"\"\"|#!)", text, re.MULTILINE)
    return text[match.start() :] if match else text


def _tidy(source: str) -> str:
    return source.strip("\n") + "\n"
