"""Process 1 of a runner's PID namespace: drains its output, watches its memory, freezes and ends it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
import time
from typing import Any

LOG_LIMIT = 256 * 1024  # bytes of a worker's output that are kept
TMPFS_BYTES = 4 << 30
WATCH_SECONDS = 0.05
# S stop, C continue, A bytes of shared memory to leave out of the watch, P the core for the worker's main thread plus 1
COMMAND = struct.Struct("<cQ")


class Supervisor:
    """Process 1 of a runner's PID namespace (or its subreaper): output, memory, freezing, the end."""

    def __init__(
        self,
        folder: str,
        memory_limit: int,
        worker: int,
        own_namespace: bool,
        control: int,
        report: int,
        output: int,
        log: int,
    ) -> None:
        self.folder = folder
        self.memory_limit = memory_limit
        self.worker = worker
        self.own_namespace = own_namespace
        self.control = socket.socket(fileno=control)
        self.report = socket.socket(fileno=report)
        self.output = output
        self.log = log
        self.logged = 0
        self.allowance = 0
        self.over = False
        self.pending = b""

    def tell(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            self.report.sendall(json.dumps(message).encode() + b"\n")

    def loop(self) -> None:
        next_watch = 0.0
        while True:
            sources: list[Any] = [self.control, self.report]
            if self.output >= 0:
                sources.append(self.output)
            readable, _, _ = select.select(sources, [], [], WATCH_SECONDS)
            if self.output in readable:
                self._drain()
            if self._worker_gone():
                break
            if self.report in readable or (self.control in readable and not self._obey()):
                self._last_look()
                break
            if self.memory_limit and time.monotonic() >= next_watch:
                next_watch = time.monotonic() + WATCH_SECONDS
                if self._memory() > self.memory_limit:
                    self.tell({"over_memory": self.memory_limit})
                    break
        self._signal_all(signal.SIGKILL)
        if self.output >= 0:
            os.set_blocking(self.output, False)
            with contextlib.suppress(OSError):
                self._drain()

    def _last_look(self) -> None:
        """The sockets can close a moment before a dying worker can be reaped."""
        for _ in range(10):
            if self._worker_gone():
                return
            time.sleep(0.005)

    def _worker_gone(self) -> bool:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self.worker:
                self.tell({"exited": os.waitstatus_to_exitcode(status)})
                return True

    def _drain(self) -> None:
        data = os.read(self.output, 1 << 16)
        if not data:
            os.close(self.output)
            self.output = -1
        elif self.logged < LOG_LIMIT:
            os.write(self.log, data[: LOG_LIMIT - self.logged])
            self.logged += len(data)

    def _obey(self) -> bool:
        data = self.control.recv(COMMAND.size - len(self.pending))
        if not data:
            return False
        self.pending += data
        if len(self.pending) < COMMAND.size:
            return True
        command, value = COMMAND.unpack(self.pending)
        self.pending = b""
        if command == b"S":
            self._freeze()
            self.control.sendall(b"s")
        elif command == b"C":
            self._signal_all(signal.SIGCONT)
        elif command == b"A":
            self.allowance = value
        elif command == b"P":
            with contextlib.suppress(OSError):
                os.sched_setaffinity(self.worker, {value - 1} if value else os.sched_getaffinity(0))
        return True

    def _freeze(self) -> None:
        """Stops every process of the runner and waits until each has stopped."""
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            self._signal_all(signal.SIGSTOP)
            if all(state in "TtZX" for state in map(_state, self._members())):
                return

    def _members(self) -> list[int]:
        mine = os.getpid()
        everyone = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != mine]  # noqa: PTH208
        if self.own_namespace:
            return everyone
        parents = {pid: _parent(pid) for pid in everyone}
        family = {mine}
        while grown := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= grown
        return sorted(family - {mine})

    def _signal_all(self, number: int) -> None:
        if self.own_namespace:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, number)
            return
        for pid in self._members():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _memory(self) -> int:
        """Anonymous and shared memory of all processes plus temporary files, in bytes."""
        used = sum(map(_resident, self._members()))
        with contextlib.suppress(OSError):
            disk = os.statvfs(self.folder)
            if disk.f_blocks * disk.f_frsize == TMPFS_BYTES:
                used += (disk.f_blocks - disk.f_bfree) * disk.f_frsize
        return used - self.allowance


def _stat(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return ["X", "0"]


def _state(pid: int) -> str:
    return _stat(pid)[0]


def _parent(pid: int) -> int:
    return int(_stat(pid)[1])


def _resident(pid: int) -> int:
    total = 0
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/status", "rb") as file:  # noqa: PTH123
        for line in file:
            if line.startswith((b"RssAnon", b"RssShmem")):
                total += int(line.split()[1]) * 1024
    return total
