"""The files of the system as a stream of batches: inotify where it works, polling on network folders."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import warnings
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import psutil

from cudal1_core.errors import UsageError
from cudal1_core.watch.selection import Selection

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver, ObservedWatch

How = Literal["inotify", "polling"]
QUIET_S = 0.05  # a save is over when nothing happened for this long
LONGEST_S = 0.5  # a burst that does not end is looked at in between
POLL_S = 1.0
LOOK_S = 2.0  # how often the named places are asked whether they are still the same ones
NETWORK = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "drvfs", "fuse.sshfs", "glusterfs", "fuse.glusterfs", "lustre", "ncpfs"}
    | {"nfs", "nfs4", "smb3", "smbfs", "vboxsf"}
)
_LIMITS = {errno.ENOSPC: "max_user_watches", errno.EMFILE: "max_user_instances"}


class Observing:
    """Watches what a selection names. Use as a context; `batches` is read by one consumer.

    `polling` asks for polling every so many seconds; without it polling is for network folders alone.
    Raises UsageError where the system's limit is reached or a place cannot be watched.
    """

    def __init__(self, selection: Selection, polling: float | None = None) -> None:
        self._selection = selection
        self._seconds = polling or POLL_S
        places = [*selection.folders, *(file.parent for file in selection.files)]
        self.how: How = "polling" if polling or any(is_network(place) for place in places) else "inotify"
        self._observer: BaseObserver | None = None
        self._watches: dict[Path, ObservedWatch] = {}
        self._identities: dict[Path, tuple[int, int] | None] = {}
        self._queue: asyncio.Queue[set[Path]] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> Observing:
        # The library speaks on standard error, which a screen may be drawn on.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog\.")
        logging.getLogger("watchdog").addHandler(logging.NullHandler())
        self._observer = self._make()
        try:
            self._observer.start()
            for place in self._places():
                self._schedule(place)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._observer is not None and self._observer.is_alive():
            self._observer.stop()
            self._observer.join(5)
        self._observer = None

    def also(self, files: Iterable[Path]) -> None:
        """Watches the folders of helpers too."""
        for folder in {file.parent for file in files}:
            if folder not in self._watches and not any(folder.is_relative_to(root) for root in self._selection.folders):
                with contextlib.suppress(UsageError):  # the reference itself is still watched
                    self._schedule(folder)

    async def batches(self) -> AsyncIterator[set[Path]]:
        """What changed, one set a burst; a folder stands for everything in it. An empty set never comes."""
        looking = asyncio.create_task(self._look_after())
        try:
            while True:
                batch = await self._queue.get()
                last = self._loop.time() + LONGEST_S
                with contextlib.suppress(TimeoutError):
                    while (left := min(QUIET_S, last - self._loop.time())) > 0:
                        async with asyncio.timeout(left):
                            batch = batch | await self._queue.get()
                yield batch
        finally:
            looking.cancel()

    def _places(self) -> list[Path]:
        """Folders to watch: those named, and those of named files and of what they link to."""
        places = [*self._selection.folders]
        for file in self._selection.files:
            places += [file.parent, file.resolve().parent]
        return list(dict.fromkeys(places))

    def _make(self) -> BaseObserver:
        if self.how == "polling":
            from watchdog.observers.polling import PollingObserverVFS

            return PollingObserverVFS(os.stat, self._listed, polling_interval=self._seconds)
        from watchdog.observers import Observer

        return Observer()

    def _listed(self, place: str | None) -> Iterator[os.DirEntry[str]]:
        """What polling looks at: folders that are entered, and Python files."""
        try:
            with os.scandir(place) as entries:
                found = list(entries)
        except OSError:
            return iter(())
        return (
            entry
            for entry in found
            if entry.name.endswith(".py") or (entry.is_dir() and self._selection.enters(Path(entry.path)))
        )

    def _schedule(self, place: Path) -> None:
        from watchdog.events import (
            DirCreatedEvent,
            DirDeletedEvent,
            DirMovedEvent,
            FileClosedEvent,
            FileCreatedEvent,
            FileDeletedEvent,
            FileModifiedEvent,
            FileMovedEvent,
            FileSystemEventHandler,
        )

        wanted: list[type[FileSystemEvent]] = [
            *(FileCreatedEvent, FileModifiedEvent, FileMovedEvent, FileClosedEvent, FileDeletedEvent),
            *(DirCreatedEvent, DirMovedEvent, DirDeletedEvent),
        ]
        handler = FileSystemEventHandler()
        handler.on_any_event = self._happened  # type: ignore[method-assign]
        assert self._observer is not None
        try:
            self._watches[place] = self._observer.schedule(
                handler, str(place), recursive=place in self._selection.folders, event_filter=wanted
            )
        except OSError as error:
            raise _cannot_watch(place, error) from error
        self._identities[place] = _identity(place)

    def _happened(self, event: FileSystemEvent) -> None:
        """Called in the observer's thread."""
        paths = {Path(os.fsdecode(path)) for path in (event.src_path, event.dest_path) if path}
        named = {path for path in paths if event.is_directory or path.suffix == ".py" or path.name == ".gitignore"}
        if named:
            with contextlib.suppress(RuntimeError):  # the loop has ended in the meantime
                self._loop.call_soon_threadsafe(self._queue.put_nowait, named)

    async def _look_after(self) -> None:
        """A named place that was moved away and is there again, as after a checkout, is watched anew."""
        while True:
            await asyncio.sleep(LOOK_S)
            for place, before in tuple(self._identities.items()):
                now = _identity(place)
                if now == before:
                    continue
                self._identities[place] = now
                self._queue.put_nowait({place})
                if now is not None:
                    with contextlib.suppress(UsageError, KeyError):
                        self._drop(place)
                        self._schedule(place)

    def _drop(self, place: Path) -> None:
        assert self._observer is not None
        self._observer.unschedule(self._watches.pop(place))


def is_network(place: Path) -> bool:
    """Whether the folder lies on another machine, whose changes this system's kernel does not tell of."""
    place = place.resolve()
    mounts = {Path(mount.mountpoint): mount.fstype for mount in psutil.disk_partitions(all=True)}
    return next((mounts[at] for at in (place, *place.parents) if at in mounts), "") in NETWORK


def _identity(place: Path) -> tuple[int, int] | None:
    try:
        stat = place.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _cannot_watch(place: Path, error: OSError) -> UsageError:
    limit = _LIMITS.get(error.errno or 0)
    if limit is None:
        return UsageError(f"{place} cannot be watched: {error.strerror or error}", "", "Look at its permissions.")
    value = ""
    with contextlib.suppress(OSError):
        value = " " + Path(f"/proc/sys/fs/inotify/{limit}").read_text(encoding="ascii").strip()
    return UsageError(
        f"{place}: too much to watch",
        f"The system's limit fs.inotify.{limit} ({value.strip() or 'not known'}) is reached.",
        f"Add --poll, which needs no such limit, or raise it: sudo sysctl fs.inotify.{limit}=524288",
    )
