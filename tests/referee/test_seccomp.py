"""What the filter refuses, and what goes on as before. Each attempt runs in a child, since a filter is for good."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from cudal1_core.referee import linux, sandbox, seccomp
from cudal1_core.verdict import Verdict

from tests.referee.test_sandbox import Judge, trying

pytestmark = pytest.mark.skipif(
    sandbox.probe()["seccomp"] != "works", reason=f"this system has no seccomp: {sandbox.probe()['seccomp']}"
)
COLUMN = 0 if os.uname().machine == "x86_64" else 1


def filtered(attempt: Callable[[], object], **options: bool) -> int:
    """Error number that `attempt` ends with in a filtered child; 0 where it succeeds."""
    child = os.fork()
    if child == 0:
        code = 255
        try:
            linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
            seccomp.restrict(**options)
            attempt()
            code = 0
        except OSError as error:
            code = error.errno or 254
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("name", [*seccomp._FORBIDDEN])
def test_forbidden_calls_are_refused(name: str) -> None:
    number = seccomp._FORBIDDEN[name][COLUMN]
    assert filtered(lambda: linux.syscall(number, 0, 0, 0, 0, 0)) == errno.EPERM


@pytest.mark.parametrize("name", [*seccomp._UNKNOWN])
def test_newer_ways_are_unknown(name: str) -> None:
    number = seccomp._UNKNOWN[name][COLUMN]
    assert filtered(lambda: linux.syscall(number, 0, 0, 0, 0, 0)) == errno.ENOSYS


def test_one_that_is_pinned_stays_on_its_cores() -> None:
    assert filtered(lambda: os.sched_setaffinity(0, {0}), pinned=True) == errno.EPERM
    assert filtered(lambda: os.sched_setaffinity(0, os.sched_getaffinity(0))) == 0


def test_namespaces_cannot_be_made_with_clone() -> None:
    for flag in (linux.CLONE_NEWUSER, linux.CLONE_NEWNS, linux.CLONE_NEWPID, linux.CLONE_NEWNET, linux.CLONE_NEWIPC):
        assert filtered(lambda flag=flag: linux.syscall(seccomp._CLONE[COLUMN], flag | 17, 0, 0, 0, 0)) == errno.EPERM


def test_limits_of_another_process_stay() -> None:
    import resource

    parent = os.getpid()
    assert filtered(lambda: resource.prlimit(parent, resource.RLIMIT_NOFILE, (8, 8))) == errno.EPERM
    assert filtered(lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0))) == 0


def test_a_socket_in_the_file_system_cannot_be_reached(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mail:
        server.bind(path)
        server.listen()
        mail.bind(path + "d")
        assert filtered(lambda: socket.socket(socket.AF_UNIX).connect(path)) == errno.ENOENT
        assert filtered(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) == errno.EACCES
        assert filtered(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)) == errno.EACCES
        assert filtered(lambda: socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b"x", path + "d")) == errno.EPERM


def test_sockets_beyond_the_network_namespace_cannot_be_made() -> None:
    virtual_machine, crypto = 40, 38
    for family in (virtual_machine, crypto):
        assert filtered(lambda family=family: socket.socket(family)) == errno.EAFNOSUPPORT


def test_ordinary_programs_run_as_before(tmp_path: Path) -> None:
    def work() -> None:
        thread = threading.Thread(target=lambda: (tmp_path / "thread").write_text("ran"))
        thread.start()
        thread.join()
        one, other = socket.socketpair()
        one.sendall(b"x")
        assert other.recv(1) == b"x"
        subprocess.run([sys.executable, "-c", "import ctypes, mmap; mmap.mmap(-1, 4096)"], check=True)

    assert filtered(work) == 0
    assert (tmp_path / "thread").read_text() == "ran"


def test_a_candidate_cannot_connect_to_a_socket_by_its_path(relu_reference: Path, judge: Judge, tmp_path: Path) -> None:
    """No namespace stands before the socket of a container engine or of a session."""
    path = str(tmp_path / "engine.sock")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        body = f"s = socket.socket(socket.AF_UNIX)\ns.connect({path!r})\nreturn 'connected'"
        verdict: Verdict = judge(relu_reference, trying(body))
    assert verdict.accepted, verdict.reason
    assert "seccomp" in verdict.isolation


def test_a_speed_limit_is_not_imposed(relu_reference: Path, judge: Judge) -> None:
    """A filter without the flag for it would switch on the slow handling of speculation on older kernels."""
    check = (
        "lines = [line for line in open('/proc/self/status') if line.startswith('Speculation_Store_Bypass')]\n"
        "return any('force mitigated' in line or line.endswith('thread mitigated\\n') for line in lines) and lines"
    )
    assert judge(relu_reference, trying(check)).accepted
