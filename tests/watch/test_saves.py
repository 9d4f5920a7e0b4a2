"""However a file is saved, the watch sees one change, and sees nothing where nothing changed."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cudal1_core.errors import UsageError
from cudal1_core.watch import observing
from cudal1_core.watch.following import Following, Seen
from cudal1_core.watch.observing import Observing
from cudal1_core.watch.selection import Selection

from tests.watch.editors import SAVES, vim, vs_code
from tests.watch.references import reference

PATIENCE_S = 30


@dataclass
class Post:
    """A watch on a folder, and what it saw."""

    following: Following
    observing: Observing
    seen: list[Seen] = field(default_factory=list)

    async def until(self, state: str, path: Path) -> list[Seen]:
        """Everything seen up to the state of that file; it is forgotten."""
        async with asyncio.timeout(PATIENCE_S):
            async for batch in self.observing.batches():
                self.seen += self.following.look(batch)
                if any(seen.state == state and seen.path == path for seen in self.seen):
                    break
        seen, self.seen = self.seen, []
        return seen


@asynccontextmanager
async def watched(*paths: Path, polling: float | None = None) -> AsyncIterator[Post]:
    selection = Selection(list(paths))
    with Observing(selection, polling) as eyes:
        following = Following(selection)
        following.start()
        eyes.also(following.helpers)
        yield Post(following, eyes)


def changes(seen: list[Seen], path: Path) -> int:
    return sum(one.state == "changed" and one.path == path for one in seen)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(reference())
    return path


@pytest.mark.parametrize("of", ["file", "folder"])
@pytest.mark.parametrize("editor", list(SAVES))
async def test_a_save_is_one_change(model: Path, editor: str, of: str) -> None:
    if editor == "git checkout" and shutil.which("git") is None:
        pytest.skip("git is not installed")
    async with watched(model if of == "file" else model.parent) as post:
        SAVES[editor](model, reference(2))
        assert changes(await post.until("changed", model), model) == 1
        SAVES[editor](model, reference(2) + "# only a comment\n")
        quiet = await post.until("unchanged", model)
        assert changes(quiet, model) == 0
        vs_code(model, reference(3))
        assert changes(await post.until("changed", model), model) == 1


async def test_polling_sees_the_same(model: Path) -> None:
    async with watched(model, polling=0.1) as post:
        assert post.observing.how == "polling"
        vim(model, reference(2))
        assert changes(await post.until("changed", model), model) == 1


async def test_a_module_that_it_imports_counts_as_its_change(model: Path) -> None:
    (model.parent / "parts").mkdir()
    helper = model.parent / "parts" / "helper.py"
    helper.write_text("A = 1\n")
    model.write_text("from parts import helper\n" + reference())
    async with watched(model) as post:
        vim(helper, "A = 2\n")
        assert changes(await post.until("changed", model), model) == 1


async def test_our_own_files_never_count(model: Path) -> None:
    async with watched(model.parent) as post:
        for name in ("model_optimized.py", "model_optimized_2.py", ".cudal1/runs/r/c01.py"):
            (model.parent / name).parent.mkdir(parents=True, exist_ok=True)
            (model.parent / name).write_text(reference(7))
        (model.parent / "out.py").write_text("# judge it again: cudal1-tui verify model.py out.py\n" + reference(8))
        vim(model, reference(2))
        seen = await post.until("changed", model)
        assert {one.path for one in seen} == {model}


async def test_what_does_not_parse_waits_and_comes_back(model: Path) -> None:
    async with watched(model) as post:
        vim(model, "class Model(:\n")
        (*_, waiting) = await post.until("unreadable", model)
        assert waiting.message.startswith("model.py:1: ")
        vim(model, "class Model( :\n")  # told once
        vim(model, reference())
        back = await post.until("unchanged", model)
        assert [one.state for one in back] == ["unchanged"]


async def test_a_file_that_goes_and_comes_back(model: Path) -> None:
    async with watched(model) as post:
        model.unlink()
        await post.until("gone", model)
        vim_free = reference()
        model.write_text(vim_free)
        assert changes(await post.until("changed", model), model) == 1


async def test_new_folders_renames_and_moves(model: Path) -> None:
    async with watched(model.parent) as post:
        new = model.parent / "later" / "on" / "b.py"
        new.parent.mkdir(parents=True)
        new.write_text(reference(5))
        assert changes(await post.until("changed", new), new) == 1
        moved = new.with_name("c.py")
        new.rename(moved)
        seen = await post.until("changed", moved)
        assert changes(seen, moved) == 1
        away = model.parent / "elsewhere"
        (model.parent / "later").rename(away)
        there = away / "on" / "c.py"
        assert changes(await post.until("changed", there), there) == 1


async def test_a_link_is_watched_where_it_points(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "links").mkdir()
    real, link = tmp_path / "real" / "model.py", tmp_path / "links" / "model.py"
    real.write_text(reference())
    link.symlink_to(real)
    async with watched(link) as post:
        vs_code(real, reference(2))
        assert changes(await post.until("changed", link), link) == 1


async def test_a_folder_that_is_made_anew_is_watched_again(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observing, "LOOK_S", 0.05)
    async with watched(model) as post:
        old = model.parent.with_name("old")
        model.parent.rename(old)
        await post.until("gone", model)
        shutil.copytree(old, model.parent)
        await post.until("changed", model)
        vim(model, reference(2))
        assert changes(await post.until("changed", model), model) == 1


async def test_many_saves_in_a_burst_are_few_changes(model: Path) -> None:
    async with watched(model) as post:
        for number in range(2, 60):
            vs_code(model, reference(number))
        seen = await post.until("changed", model)
        assert changes(seen, model) == 1
        vs_code(model, reference())
        await post.until("changed", model)


@pytest.mark.parametrize(
    ("number", "limit"), [(errno.ENOSPC, "max_user_watches"), (errno.EMFILE, "max_user_instances")]
)
async def test_the_systems_limit_is_named_and_polling_offered(
    model: Path, monkeypatch: pytest.MonkeyPatch, number: int, limit: str
) -> None:
    from watchdog.observers.inotify import InotifyObserver

    def full(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(InotifyObserver, "schedule", full)
    with pytest.raises(UsageError) as raised, Observing(Selection([model])):
        pass
    assert f"fs.inotify.{limit}" in raised.value.meaning
    assert "--poll" in raised.value.next_step
    with Observing(Selection([model]), polling=1.0) as eyes:
        assert eyes.how == "polling"


async def test_network_folders_are_polled(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Mount:
        mountpoint, fstype = str(model.parent), "nfs4"

    monkeypatch.setattr("psutil.disk_partitions", lambda all: [Mount])
    with Observing(Selection([model])) as eyes:
        assert eyes.how == "polling"
