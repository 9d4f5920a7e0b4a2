"""What can be said of a reference file without running it."""

from __future__ import annotations

import ast
import tokenize
from pathlib import Path

from cudal1_core.errors import UnjudgeableError

EXPECTED = "A reference is a Python file with `class Model(nn.Module)`, `get_inputs()` and `get_init_inputs()`."


def read_reference(path: Path) -> str:
    """The text of the file. Raises UnjudgeableError("bad_reference") for what is not readable Python."""
    if not path.exists():
        raise _bad(f"{path}: no such file", EXPECTED, _near(path))
    if path.is_dir():
        raise _bad(f"{path} is a folder", EXPECTED, _inside(path))
    if path.suffix != ".py":
        raise _bad(f"{path} is not a .py file", EXPECTED, "Give the Python file that defines the module.")
    try:
        with tokenize.open(path) as stream:  # follows a byte order mark and a coding line, as Python does
            source = stream.read()
    except OSError as error:
        raise _bad(f"{path} cannot be read: {error.strerror}", "", "Look at the file's permissions.") from error
    except (UnicodeDecodeError, SyntaxError) as error:
        raise _bad(
            f"{path}:{_undecodable_line(path)}: not UTF-8 text",
            "Python reads source files as UTF-8 unless the first line names another encoding.",
            "Save the file as UTF-8.",
        ) from error
    try:
        ast.parse(source)
    except SyntaxError as error:
        line = (error.text or "").strip()
        raise _bad(
            f"{path}:{error.lineno or 1}: {error.msg}",
            f"Python cannot read this line: {line}" if line else "",
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise _bad(f"{path}: {error}", EXPECTED) from error
    return source


def _bad(title: str, meaning: str, next_step: str = "Mend the file and start again.") -> UnjudgeableError:
    return UnjudgeableError("bad_reference", title, meaning, next_step)


def _near(path: Path) -> str:
    """What lies where the file was looked for."""
    if not path.parent.is_dir():
        return f"The folder {path.parent} does not exist either."
    names = sorted(file.name for file in path.parent.glob("*.py"))
    return _choice(path.parent, names)


def _inside(path: Path) -> str:
    return _choice(path, sorted(file.name for file in path.glob("*.py")))


def _choice(folder: Path, names: list[str]) -> str:
    if not names:
        return f"There is no .py file in {folder.resolve()}."
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"Python files there: {', '.join(names[:5])}{more}."


def _undecodable_line(path: Path) -> int:
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError:
            return number
    return 1
