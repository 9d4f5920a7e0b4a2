"""The host's ends of its worker processes: the supervisor's reports, and messages without blocking."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import struct
from pathlib import Path
from typing import Any

from cudal1_core.referee.channel import TRUSTED_LIMIT, Channel

END_SECONDS = 1.5
REPORT_SECONDS = 1.0


class Process:
    """A worker as the host knows it: its supervisor's reports, and how to end it."""

    def __init__(self, report: socket.socket, folder: Path, log: Path, control: socket.socket | None) -> None:
        self.report = report
        self.control = control  # of a worker that nobody freezes; its closing would end the worker
        self.writer: asyncio.StreamWriter | None = None
        self.folder = folder
        self.log = log
        self.pid = 0
        self.isolation: tuple[str, ...] = ()
        self.told = asyncio.Event()  # the walls around it are known, or it is gone
        self.ended = asyncio.Event()
        self.exit_code: int | None = None
        self.ended_for: tuple[str, str] | None = None  # category and reason, where its supervisor ended it
        self.task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        reader, self.writer = await asyncio.open_unix_connection(sock=self.report)
        with contextlib.suppress(OSError, ValueError):
            while line := await reader.readline():
                fact = json.loads(line)
                if "isolation" in fact:
                    self.isolation = tuple(fact["isolation"])
                    self.told.set()
                self.exit_code = fact.get("exited", self.exit_code)
                if "ended" in fact:
                    self.ended_for = (fact["ended"][0], fact["ended"][1])
        self.told.set()
        self.ended.set()

    async def settled(self) -> None:
        """Waits a moment for the supervisor's last word on a worker that is gone."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.ended.wait(), REPORT_SECONDS)

    async def end(self, patience_s: float = END_SECONDS) -> None:
        """Ends every process of the worker, and removes its folder."""
        with contextlib.suppress(OSError):
            self.report.shutdown(socket.SHUT_WR)
        try:
            await asyncio.wait_for(self.ended.wait(), patience_s)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task
        if self.writer is not None:
            self.writer.close()
        if self.control is not None:
            self.control.close()
        await asyncio.to_thread(shutil.rmtree, self.folder, True)

    def last_words(self) -> str:
        """The end of what it printed."""
        try:
            return self.log.read_bytes()[-2000:].decode("utf-8", "replace").strip()
        except OSError:
            return ""


class Line:
    """Messages to and from a trusted worker without blocking the event loop."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.sender = Channel(sock.dup())

    async def connect(self) -> None:
        self.reader, self.writer = await asyncio.open_unix_connection(sock=self.sock, limit=TRUSTED_LIMIT)

    def send(self, message: dict[str, Any], fds: list[int] | None = None) -> None:
        self.sender.send_pickle(message, fds)

    async def receive(self, timeout: float | None, limit: int = TRUSTED_LIMIT) -> Any:
        """Raises TimeoutError, EOFError when the worker is gone, ValueError for too long or no JSON."""
        async with asyncio.timeout(timeout):
            (length,) = struct.unpack("<I", await self._exactly(4))
            if length > limit:
                raise ValueError(f"a message of {length} bytes, more than {limit}")
            return json.loads(await self._exactly(length))

    async def _exactly(self, count: int) -> bytes:
        try:
            return await self.reader.readexactly(count)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise EOFError from error

    def close(self) -> None:
        self.writer.close()
        self.sender.close()


def death(code: int | None) -> str:
    """How a process ended, in words."""
    if code is None:
        return "it vanished"
    if code < 0:
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"
    return f"exited with status {code}"
