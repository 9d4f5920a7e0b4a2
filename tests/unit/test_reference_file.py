"""A reference that cannot be read is refused by name and line, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from cudal1_core.errors import UnjudgeableError
from cudal1_core.reference_file import read_reference


def refused(path: Path) -> str:
    with pytest.raises(UnjudgeableError) as caught:
        read_reference(path)
    assert caught.value.category == "bad_reference"
    assert caught.value.exit_status == 2
    return str(caught.value)


def test_good_files_are_read_with_any_line_ends_and_encoding(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_bytes(b"\xef\xbb\xbfname = 1\r\n")
    assert read_reference(path) == "name = 1\n"
    path.write_bytes("# -*- coding: latin-1 -*-\nname = 'é'\n".encode("latin-1"))
    assert "é" in read_reference(path)


def test_a_missing_file_names_what_lies_there(tmp_path: Path) -> None:
    (tmp_path / "model.py").touch()
    text = refused(tmp_path / "modle.py")
    assert "no such file" in text
    assert "model.py" in text
    assert "class Model" in text


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    assert "gone does not exist either" in refused(tmp_path / "gone" / "m.py")


def test_a_folder_and_another_kind_of_file_are_refused(tmp_path: Path) -> None:
    assert "is a folder" in refused(tmp_path)
    (tmp_path / "m.txt").touch()
    assert "not a .py file" in refused(tmp_path / "m.txt")


@pytest.mark.parametrize(
    ("content", "line", "word"),
    [
        (b"a = 1\nb = 2\nc = '\xff'\n", 3, "UTF-8"),
        (b"a = 1\n\ndef f(:\n", 3, "invalid syntax"),
        (b"a = 1\nb = '\x00'\n", None, "null"),
    ],
)
def test_bad_content_is_named_with_its_line(tmp_path: Path, content: bytes, line: int | None, word: str) -> None:
    path = tmp_path / "m.py"
    path.write_bytes(content)
    text = refused(path)
    assert word in text
    assert str(path) in text
    if line is not None:
        assert f"m.py:{line}:" in text
