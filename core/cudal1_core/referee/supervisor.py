"""Process 1 of a runner's PID namespace: drains its output, watches what it uses, freezes and ends it.

A stopped process cannot refuse to stop, but it can be continued: by a timer that sends SIGCONT, or by another process
just before that one stops. So what counts is what the kernel says they have computed: not a nanosecond more from one
turn to the next.
"""

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

from cudal1_core.referee import caches

LOG_LIMIT = 256 * 1024  # bytes of a worker's output that are kept
TMPFS_BYTES = 4 << 30
WATCH_SECONDS = 0.05
MOST_PROCESSES = 1000
LEAST_LEFT = 8  # the machine's free memory may fall to the memory limit divided by this
FREEZE_SECONDS = 5.0
UNTIL_CALLS_END = 0.1  # seconds that stopping waits for threads inside a system call
RAN_NS = 50_000  # processor time of a stopped runner that is let pass
THREADS = 17  # place of the number of threads in what _stat gives
# S stop (answered with s, or r: it ran after it had stopped), C continue, A bytes of shared memory to leave out of the
# watch, P the core for the worker's main thread plus 1, M the worker's memory for reading (answered with m),
# W how long its threads have waited for a core, in ns (answered with a COMMAND that holds it)
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
        memory: int | None = None,
        pack: int | None = None,
    ) -> None:
        self.folder = folder
        self.memory_limit = memory_limit
        self.worker = worker
        self.own_namespace = own_namespace
        self.control = socket.socket(fileno=control)
        self.report = socket.socket(fileno=report)
        self.output = output
        self.log = log
        self.memory = memory  # of the worker's process, opened before it could do anything about it
        self.pack = pack  # where to put what its compilers made, when it ends
        self.logged = 0
        self.allowance = 0
        self.pending = b""
        self.stopped: dict[int, int] | None = None  # processor time by process, in ns, while stopped
        self.ran = False  # while it should have been stopped
        self.shared = _meminfo(b"Shmem")
        self.disk = _disk_free(folder)

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
                if excess := self._excess():
                    self.tell({"ended": excess})
                    break
        self._signal_all(signal.SIGKILL)
        if self.output >= 0:
            os.set_blocking(self.output, False)
            with contextlib.suppress(OSError):
                self._drain()
        if self.pack is not None:
            self._until_all_are_gone()
            caches.pack(self.folder, self.pack)

    def _until_all_are_gone(self) -> None:
        deadline = time.monotonic() + FREEZE_SECONDS
        while self._members() and time.monotonic() < deadline:
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            time.sleep(0.002)

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
            self._look_whether_it_ran()
            self._freeze()
            self.control.sendall(b"r" if self.ran else b"s")
        elif command == b"C":
            self._look_whether_it_ran()
            self._signal_all(signal.SIGCONT)
        elif command == b"A":
            self.allowance = value
        elif command == b"M":
            if self.memory is None:
                self.control.sendall(b"m")
            else:
                socket.send_fds(self.control, [b"m"], [self.memory])
        elif command == b"W":
            self.control.sendall(COMMAND.pack(b"w", sum(map(_waited, self._members()))))
        elif command == b"U":
            self.control.sendall(COMMAND.pack(b"u", sum(_spent(pid) or 0 for pid in self._members())))
        elif command == b"P":
            with contextlib.suppress(OSError):
                os.sched_setaffinity(self.worker, {value - 1} if value else os.sched_getaffinity(0))
        return True

    def _freeze(self) -> None:
        """Stops every thread of the runner, and notes what each process has computed until then."""
        begin = time.monotonic()
        while (waited := time.monotonic() - begin) < FREEZE_SECONDS:
            self._signal_all(signal.SIGSTOP)
            # D: inside a system call, for instance until a child it has just made is continued
            still = "TtZX" if waited < UNTIL_CALLS_END else "TtZXD"
            members = self._members()
            if all(state in still for pid in members for state in _states(pid)):
                break
        self.stopped = {pid: spent for pid in members if _states(pid) != ["Z"] and (spent := _spent(pid)) is not None}

    def _look_whether_it_ran(self) -> None:
        """Called before it is continued, and when it is to stop again without having been continued.

        Of processes that were made meanwhile, whoever made them has computed.
        """
        if self.stopped is not None:
            now = {pid: _spent(pid) for pid in self.stopped}
            ended = {pid for pid, spent in now.items() if spent is None} - {self.worker}
            more = sum(spent - self.stopped[pid] for pid, spent in now.items() if spent is not None)
            self.ran |= more > RAN_NS or bool(ended)
            self.stopped = None

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

    def _excess(self) -> list[str]:
        """Why it must end, as category and words; empty where it uses no more than it may."""
        members = self._members()
        limit = f"{self.memory_limit / 2**30:.1f} GiB"
        if len(members) > MOST_PROCESSES:
            return ["crashed", f"it had more than {MOST_PROCESSES} processes and was ended"]
        if self._memory(members) > self.memory_limit:
            return ["out_of_memory", f"it used more than {limit} and was ended"]
        # files in memory that no process has mapped; there are arenas as large as its own for the reference
        if _meminfo(b"Shmem") - self.shared - 2 * self.allowance > self.memory_limit:
            return ["out_of_memory", f"shared memory grew by more than {limit} while it ran, and it was ended"]
        if _meminfo(b"MemAvailable") < self.memory_limit // LEAST_LEFT:
            return ["out_of_memory", "the machine had hardly any memory left while it ran, and it was ended"]
        if self.disk - _disk_free(self.folder) > TMPFS_BYTES:
            return ["out_of_memory", f"it filled {TMPFS_BYTES / 2**30:.0f} GiB of the temporary disk and was ended"]
        return []

    def _memory(self, members: list[int]) -> int:
        """Anonymous and shared memory of all processes plus temporary files, in bytes."""
        used = sum(map(_resident, members))
        with contextlib.suppress(OSError):
            disk = os.statvfs(self.folder)
            if disk.f_blocks * disk.f_frsize == TMPFS_BYTES:
                used += (disk.f_blocks - disk.f_bfree) * disk.f_frsize
        return used - self.allowance


def _spent(pid: int) -> int | None:
    """Processor time of a whole process in ns; None where it is gone."""
    try:
        return time.clock_gettime_ns(~pid << 3 | 2)  # the clock that clock_getcpuclockid names
    except OSError:
        return None


def _waited(pid: int) -> int:
    """Nanoseconds that its threads were ready to run and no core was free; 0 where the system does not count them."""
    total = 0
    with contextlib.suppress(OSError, ValueError, IndexError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            with open(f"/proc/{pid}/task/{thread}/schedstat", "rb") as file:  # noqa: PTH123
                total += int(file.read().split()[1])
    return total


def _states(pid: int) -> list[str]:
    """The state of each of its threads."""
    state, *fields = _stat(f"/proc/{pid}")
    if state == "X" or (state in "TtZ" and fields[THREADS - 1] in ("0", "1")):
        return [state]
    threads = f"/proc/{pid}/task"
    with contextlib.suppress(OSError):
        return [_stat(f"{threads}/{thread}")[0] for thread in os.listdir(threads)]  # noqa: PTH208
    return []


def _meminfo(name: bytes) -> int:
    """One line of /proc/meminfo, in bytes."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/meminfo", "rb") as file:  # noqa: PTH123
        for line in file:
            if line.startswith(name + b":"):
                return int(line.split()[1]) * 1024
    return 0 if name == b"Shmem" else 1 << 62


def _disk_free(folder: str) -> int:
    with contextlib.suppress(OSError):
        disk = os.statvfs(folder)
        return disk.f_bfree * disk.f_frsize
    return 0


def _stat(folder: str) -> list[str]:
    """What /proc says of a process or thread, from its state on."""
    try:
        with open(f"{folder}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return ["X", "0"]


def _parent(pid: int) -> int:
    return int(_stat(f"/proc/{pid}")[1])


def _resident(pid: int) -> int:
    total = 0
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/status", "rb") as file:  # noqa: PTH123
        for line in file:
            if line.startswith((b"RssAnon", b"RssShmem")):
                total += int(line.split()[1]) * 1024
    return total
