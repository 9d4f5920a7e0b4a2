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
_END = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*$", re.MULTILINE)
_THOUGHTS = re.compile(r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)|\A(?:(?!<think).)*?</think>", re.DOTALL)
MOST_ENDS = 8  # fences tried as the true end of a block
MOST_AFTERWORD = 60  # lines
_DEFINES = re.compile(
    r"^[ \t]*(?:class[ \t]+ModelNew\b|ModelNew[ \t]*[:=]|(?:from|import)\b.*\bas[ \t]+ModelNew\b)",
    re.MULTILINE,
)


def extract_code(text: str) -> str:
    """The source that defines `ModelNew`, with plain line ends; empty where the answer holds none.

    What a model thinks aloud between tags is left out, unless nothing else holds the class. An answer that is Python
    as a whole is taken whole. Otherwise the last fence that defines `ModelNew` counts, closed or cut short, whatever
    language it names; a whole one goes before a broken one, and prose behind one that was never closed is dropped.
    Without fences, everything from the first line of code to the last that still parses. A class with another name is
    no `ModelNew`.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    if defines_model(text) and _is_python(text):
        return _tidy(text)
    return _from_answer(_THOUGHTS.sub("", text)) or _from_answer(text)


def _from_answer(text: str) -> str:
    if defines_model(text) and _is_python(text):
        return _tidy(text)
    fences = [_fenced(match, text) for match in _FENCE.finditer(text)]
    found = [body for body in fences if defines_model(body)]
    if found:
        whole = [body for body in found if _is_python(body)]
        return _tidy(whole[-1] if whole else _without_prose(found[-1]))
    if fences or not defines_model(text):
        return ""
    return _tidy(_without_afterword(_from_first_code_line(text)))


def _fenced(match: re.Match[str], text: str) -> str:
    """The body of a fence. One that a fence in a docstring closed too soon goes on to the first end that parses."""
    body = textwrap.dedent(match["body"])
    if _is_python(body) or not defines_model(body + text[match.end() :]):
        return body
    start = match.start("body")
    for count, end in enumerate(_END.finditer(text, match.end())):
        longer = textwrap.dedent(text[start : end.start()])
        if count == MOST_ENDS:
            break
        if defines_model(longer) and _is_python(longer):
            return longer
    return body


def _without_prose(body: str) -> str:
    """Drops prose behind code whose fence was never closed; code that is cut off in the middle stays broken."""
    lines = body.split("\n")
    for end in range(len(lines) - 1, max(0, len(lines) - MOST_AFTERWORD), -1):
        shorter = "\n".join(lines[:end])
        at_the_margin = lines[end] == lines[end].strip() != ""
        if at_the_margin and defines_model(shorter) and _is_python(shorter):
            return shorter
    return body


def _without_afterword(text: str) -> str:
    """Drops prose behind code without a fence; code that does not parse anywhere stays as it is."""
    lines = text.split("\n")
    for end in range(len(lines), max(0, len(lines) - MOST_AFTERWORD), -1):
        shorter = "\n".join(lines[:end])
        if not defines_model(shorter):
            break
        if _is_python(shorter):
            return shorter
    return text


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
