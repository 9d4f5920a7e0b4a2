"""Copying uses every route there is and names those it used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cudal1_tui.clipboard import OSC_52_LIMIT, copy


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.delenv("TMUX", raising=False)
    return []


def fake_tmux(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    tmux = folder / "tmux"
    tmux.write_text(f"#!/bin/sh\n{script}\n")
    tmux.chmod(0o755)
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


def test_outside_tmux_the_terminal_and_a_file(sent: list[str], tmp_path: Path) -> None:
    copied = copy("code", sent.append, tmp_path)
    assert sent == ["code"]
    assert copied.file == tmp_path / "copied.py"
    assert copied.file.read_text() == "code"
    assert str(copied) == f"Copied to the terminal's clipboard (OSC 52) and in {tmp_path}/copied.py."


def test_inside_tmux_its_buffer(sent: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_tmux(tmp_path, monkeypatch, f'cat > "{tmp_path}/buffer"')
    copied = copy("é code", sent.append, tmp_path)
    assert (tmp_path / "buffer").read_text(encoding="utf-8") == "é code"
    assert (copied.tmux, copied.file) == (True, None)
    assert "tmux buffer" in str(copied)


def test_an_older_tmux_without_w(sent: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_tmux(tmp_path, monkeypatch, f'[ "$2" = -w ] && exit 1; cat > "{tmp_path}/buffer"')
    assert copy("code", sent.append, tmp_path).tmux
    assert (tmp_path / "buffer").read_text() == "code"


def test_a_tmux_that_fails_falls_back_to_a_file(
    sent: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_tmux(tmp_path, monkeypatch, "exit 1")
    copied = copy("code", sent.append, tmp_path)
    assert not copied.tmux
    assert copied.file is not None


def test_text_too_long_for_the_terminal_goes_to_the_file_alone(sent: list[str], tmp_path: Path) -> None:
    copied = copy("é" * OSC_52_LIMIT, sent.append, tmp_path)
    assert sent == []
    assert str(copied) == f"Copied in {tmp_path}/copied.py."


def test_a_folder_that_cannot_be_written_gives_way_to_a_temporary_file(
    sent: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    copied = copy("code", sent.append, tmp_path / "missing")
    assert copied.file is not None
    assert copied.file.parent == tmp_path
    assert copied.file.stat().st_mode & 0o077 == 0
