"""The referee's workers: a warm process that forks them, what each is to be, and how they end.

Runs in the event loop of the host; imports no torch.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

import psutil

from cudal1_core.errors import RefereeError
from cudal1_core.referee import sandbox
from cudal1_core.referee.channel import pair
from cudal1_core.referee.processes import END_SECONDS, Line, Process
from cudal1_core.referee.sandbox import Spec, Walls

FOLDER = "cudal1-"
START_SECONDS = 120.0  # importing torch on a cold disk


class Workers:
    """All processes of one referee, in a temporary folder of their own."""

    def __init__(self, log_dir: Path | None = None, *, read: tuple[Path, ...] = ()) -> None:
        """`read`: what hostile workers may read besides what any Python program needs."""
        _sweep()
        self.root = Path(tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid()}-"))
        self.log_dir = log_dir or self.root
        self.running: list[Process] = []
        self.cores: tuple[int, ...] = ()  # for hostile workers while they are not timed; empty: all
        self.zygote: asyncio.subprocess.Process | None = None
        self._read = tuple(str(path.absolute()) for path in read)
        self._line: Line | None = None
        self._count = 0
        self._asking = asyncio.Lock()  # one request to the zygote at a time

    async def start(self) -> None:
        """Starts the warm process where there is none. Raises RefereeError."""
        if self.zygote is not None:
            return
        ours, theirs = pair()
        environment = sandbox.passed_on()
        environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p and Path(p).is_absolute())
        self._line = Line(ours)  # connected first, so that a start that is cut off can be closed in order
        await self._line.connect()
        log = (self.log_dir / "zygote.log").open("wb")
        with log:
            self.zygote = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "cudal1_core.referee.zygote", str(theirs.fileno()),
                pass_fds=[theirs.fileno()], env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        theirs.close()
        try:
            await self._line.receive(START_SECONDS)
        except (EOFError, TimeoutError) as error:
            words = (self.log_dir / "zygote.log").read_text(errors="replace").strip()[-800:]
            raise RefereeError(
                "the referee's processes do not start",
                words,
                "Run `cudal1-tui doctor` to see whether torch works.",
            ) from error

    def warm_up(self) -> None:
        """Asks for the imports that torch makes late, which candidates then need not wait for."""
        assert self._line is not None
        self._line.sender.send_pickle(None)

    def folder(self) -> Path:
        """A new folder for a worker."""
        self._count += 1
        return self.root / f"w{self._count}"

    async def trusted(self, name: str) -> tuple[Process, socket.socket]:
        """Starts a worker that runs the reference and nothing else; our end of its channel."""
        ours, theirs = pair()
        return await self._spawn(self._spec(name, "reference", walls="none"), theirs), ours

    async def runner(self, name: str, *, walls: Walls, **what: Any) -> tuple[Process, socket.socket, socket.socket]:
        """Starts a runner; our ends of its channel and of its supervisor's control socket.

        `what` are further fields of its Spec.
        """
        channel_ours, channel_theirs = pair()
        control_ours, control_theirs = pair()
        spec = self._spec(name, "candidate", walls=walls, **what)
        try:
            process = await self._spawn(spec, channel_theirs, control_theirs)
        except BaseException:
            channel_ours.close()
            control_ours.close()
            raise
        return process, channel_ours, control_ours

    async def end(self, process: Process, patience_s: float = END_SECONDS) -> None:
        """Ends every process of the worker and removes its folder. What it printed is kept where someone may look."""
        if process in self.running:
            self.running.remove(process)
        await process.end(patience_s)
        if self.log_dir == self.root:
            process.log.unlink(missing_ok=True)

    async def end_all(self) -> None:
        running, self.running = self.running, []
        await asyncio.gather(*(process.end() for process in running))

    async def close(self) -> None:
        """Ends every child and removes every temporary file."""
        await self.end_all()
        if self.zygote is not None:
            assert self._line is not None
            self._line.close()
            with contextlib.suppress(ProcessLookupError):
                self.zygote.kill()  # it keeps nothing, and may be in the middle of a long import
            await self.zygote.wait()
            self.zygote = None
        await asyncio.to_thread(shutil.rmtree, self.root, True)

    def _spec(self, name: str, role: str, *, walls: Walls, **what: Any) -> Spec:
        hostile = walls == "all"
        folder = Path(what.pop("folder", None) or self.folder())
        folder.mkdir(mode=0o700)
        environment = sandbox.passed_on() if hostile else dict(os.environ)
        return Spec(
            role=role,
            folder=str(folder),
            walls=walls,
            log=str(self.log_dir / f"{name}.log"),
            environment={**environment, **what.pop("environment", {})},
            read=self._read if hostile else (),
            cores=self.cores if hostile else (),
            memory_limit=psutil.virtual_memory().available // 2 if hostile else 0,
            **what,
        )

    async def _spawn(self, spec: Spec, channel: socket.socket, control: socket.socket | None = None) -> Process:
        """Where this is cut off, the worker that is being started has ended on return."""
        starting = asyncio.create_task(self._fork(spec, channel, control), name="start of a worker")
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait([starting])
            if starting.exception() is None:
                await self.end(starting.result())
            raise

    async def _fork(self, spec: Spec, channel: socket.socket, control: socket.socket | None) -> Process:
        report_ours, report_theirs = pair()
        kept = None
        if control is None:
            kept, control = pair()
        process = Process(report_ours, Path(spec.folder), Path(spec.log), kept)
        self.running.append(process)
        async with self._asking:
            assert self._line is not None
            with os.fdopen(os.memfd_create("spec"), "w+b") as file:
                pickle.dump(spec, file)
                file.seek(0)
                ends = [file.fileno(), channel.fileno(), control.fileno(), report_theirs.fileno()]
                self._line.sender.send_pickle(None, ends)
            for sock in (channel, control, report_theirs):
                sock.close()
            try:
                process.pid = (await self._line.receive(END_SECONDS * 10))["pid"]
            except (EOFError, TimeoutError) as error:
                raise RefereeError("the referee's process server is gone", "", "Start again.") from error
        return process


def _sweep() -> None:
    """Removes what a killed process left behind: folders whose owner is gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER}*"):
        owner = folder.name.removeprefix(FOLDER).partition("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)) and folder.stat().st_uid == os.getuid():
            shutil.rmtree(folder, ignore_errors=True)
