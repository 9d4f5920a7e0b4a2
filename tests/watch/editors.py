"""How editors and tools save a file, as the system calls that they make."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

Save = Callable[[Path, str], None]
_NEW = os.O_WRONLY | os.O_CREAT


def _write(path: Path, text: str, flags: int, mode: int = 0o644) -> None:
    descriptor = os.open(path, flags, mode)
    os.write(descriptor, text.encode())
    os.fsync(descriptor)
    os.close(descriptor)


def vim(path: Path, text: str) -> None:
    """`backupcopy=auto`: tries whether the folder takes files, moves the old file away, writes a new one."""
    probe = path.with_name("4913")
    os.close(os.open(probe, _NEW | os.O_EXCL, 0o100644))
    probe.unlink()
    backup = path.with_name(f"{path.name}~")
    path.rename(backup)
    _write(path, text, _NEW)
    path.chmod(0o644)
    backup.unlink()


def vim_in_place(path: Path, text: str) -> None:
    """`backupcopy=yes`: copies the old file, then writes over it."""
    backup = path.with_name(f"{path.name}~")
    _write(backup, path.read_text(), _NEW | os.O_EXCL)
    _write(path, text, os.O_WRONLY | os.O_TRUNC)
    backup.unlink()


def vs_code(path: Path, text: str) -> None:
    """Empties the file, then writes it."""
    descriptor = os.open(path, _NEW | os.O_TRUNC, 0o666)
    os.ftruncate(descriptor, 0)
    os.write(descriptor, text.encode())
    os.fdatasync(descriptor)
    os.close(descriptor)


def pycharm(path: Path, text: str) -> None:
    """Safe write: a new file beside it, and two renames."""
    new, old = path.with_name(f"{path.name}___jb_tmp___"), path.with_name(f"{path.name}___jb_old___")
    _write(new, text, _NEW | os.O_TRUNC)
    path.rename(old)
    new.rename(path)
    old.unlink()


def emacs(path: Path, text: str) -> None:
    """Keeps the old file under another name and writes a new one, beside a lock that is a link to nowhere."""
    lock = path.with_name(f".#{path.name}")
    lock.symlink_to("me@here.1:1")
    path.rename(path.with_name(f"{path.name}~"))
    _write(path, text, _NEW | os.O_TRUNC)
    lock.unlink()


def sed(path: Path, text: str) -> None:
    """`sed -i` itself: a temporary file that takes the name."""
    wanted = path.with_suffix(".wanted")
    wanted.write_text(text)
    subprocess.run(["sed", "-i", "-e", f"1r {wanted}", "-e", "d", str(path)], check=True)
    wanted.unlink()


def git_checkout(path: Path, text: str) -> None:
    """`git checkout` itself, of a commit that holds the text."""

    def git(*words: str, given: str | None = None) -> str:
        command = ["git", "-C", str(path.parent), "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(command, input=given, text=True, capture_output=True, check=True).stdout.strip()

    git("init", "-q")
    git("add", path.name)
    git("commit", "--allow-empty", "-qm", "old")
    blob = git("hash-object", "-w", "--stdin", given=text)
    git("update-index", "--cacheinfo", f"100644,{blob},{path.name}")
    tree = git("write-tree")
    commit = git("commit-tree", "-m", "new", "-p", "HEAD", tree)
    git("reset", "-q")
    git("checkout", "-q", commit)


SAVES: dict[str, Save] = {
    "vim": vim,
    "vim in place": vim_in_place,
    "VS Code": vs_code,
    "PyCharm": pycharm,
    "Emacs": emacs,
    "sed -i": sed,
    "git checkout": git_checkout,
}
