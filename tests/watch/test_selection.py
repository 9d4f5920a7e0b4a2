"""Which files the watch looks at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cudal1_core.errors import UsageError
from cudal1_core.watch.selection import Selection

from tests.watch.references import reference


def tree(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def walked(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in Selection([root]).walk()}


def test_a_folder_gives_what_is_neither_ignored_nor_hidden_nor_ours(tmp_path: Path) -> None:
    tree(
        tmp_path,
        {
            "a.py": reference(),
            "deep/er/b.py": reference(),
            "a_optimized.py": "",
            "a_optimized_2.py": "",
            "fast.py": "# 2x\n# judge it again: cudal1-tui verify a.py fast.py\n",
            "notes.txt": "",
            ".hidden/c.py": "",
            ".cudal1/runs/r/c01.py": "",
            "env/pyvenv.cfg": "",
            "env/lib/d.py": "",
            "node_modules/e.py": "",
            ".gitignore": "build/\n*_old.py\n",
            "build/f.py": "",
            "a_old.py": "",
            "deep/.gitignore": "!kept_old.py\nscratch.py\n",
            "deep/kept_old.py": "",
            "deep/scratch.py": "",
        },
    )
    assert walked(tmp_path) == {"a.py", "deep/er/b.py", "deep/kept_old.py"}


def test_rules_of_the_repository_above_count(tmp_path: Path) -> None:
    tree(tmp_path, {".git/HEAD": "", ".gitignore": "/models/old/\n", "models/a.py": "", "models/old/b.py": ""})
    assert walked(tmp_path / "models") == {"a.py"}


def test_changed_rules_are_read_again(tmp_path: Path) -> None:
    tree(tmp_path, {"a.py": "", ".gitignore": ""})
    selection = Selection([tmp_path])
    assert selection.takes(tmp_path / "a.py")
    (tmp_path / ".gitignore").write_text("a.py\n")
    selection.forget(tmp_path / ".gitignore")
    assert not selection.takes(tmp_path / "a.py")


def test_a_named_file_is_watched_whatever_is_ignored(tmp_path: Path) -> None:
    tree(tmp_path, {"a.py": reference(), ".gitignore": "*\n"})
    assert Selection([tmp_path / "a.py"]).takes(tmp_path / "a.py")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing.py", "no such file or folder"),
        ("notes.txt", "not a .py file"),
        ("a_optimized.py", "what accepting wrote"),
    ],
)
def test_paths_that_cannot_be_watched_are_refused(tmp_path: Path, name: str, said: str) -> None:
    tree(tmp_path, {"notes.txt": "", "a_optimized.py": ""})
    with pytest.raises(UsageError, match=said):
        Selection([tmp_path / name])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_without_permission_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(reference())
    (tmp_path / "a.py").chmod(0)
    with pytest.raises(UsageError, match="Permission denied"):
        Selection([tmp_path / "a.py"])
