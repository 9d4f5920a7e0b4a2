"""A candidate that tries to get out: each attempt is made by real code inside a real runner."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from cudal1_core.referee import sandbox
from cudal1_core.verdict import Verdict

from tests.referee.conftest import RELU

Judge = Callable[[Path, str], Verdict]

WALLS = sandbox.probe()
needs_walls = pytest.mark.skipif(
    any(WALLS[name] != "works" for name in ("landlock", "pid namespace", "network namespace")),
    reason=f"this system lacks isolation layers: {WALLS}",
)

ATTEMPT = """
import os, socket
def attempt():
{body}
try:
    found = attempt()
except (OSError, KeyError) as error:
    found = None
if found:
    raise RuntimeError(f"got out: {{found!r}}")
""" + RELU.format(name="ModelNew")


def trying(body: str) -> str:
    return ATTEMPT.format(body="\n".join("    " + line for line in body.strip().splitlines()))


@needs_walls
@pytest.mark.parametrize(
    "body",
    [
        "return os.listdir(os.path.expanduser('~'))",
        "return os.listdir('/tmp')",
        "return open('/etc/shadow').read()",
        "return open('/proc/1/environ').read()",
        "return open('/proc/1/mem', 'rb')",
        "return [p for p in os.listdir('/proc') if p.isdigit() and int(p) > 50]",
        "os.kill(1, 9)\nreturn 'killed the supervisor'",
        "open('/dev/shm/left_by_candidate', 'w').write('x')\nreturn 'wrote to /dev/shm'",
        "open('/var/tmp/left_by_candidate', 'w').write('x')\nreturn 'wrote to /var/tmp'",
        "open('/proc/sys/kernel/core_pattern', 'w').write('|/bin/true')\nreturn 'changed the kernel'",
        "os.setuid(0)\nos.mkdir('/sys/fs/cgroup/left')\nreturn 'made a cgroup'",
        "import ctypes\nreturn ctypes.CDLL(None).ptrace(16, os.getppid(), None, None) == 0 and 'traces the supervisor'",
        "import ctypes\nc = ctypes.CDLL(None)\n"
        "return c.unshare(0x10020000) == 0 and c.mount(b'x', b'/mnt', b'tmpfs', 0, None) == 0 and 'mounted'",
    ],
)
def test_the_system_is_out_of_reach(body: str, relu_reference: Path, judge: Judge) -> None:
    verdict = judge(relu_reference, trying(body))
    assert verdict.accepted, verdict.reason
    assert "not_isolated" not in verdict.labels


@needs_walls
def test_the_reference_is_out_of_reach(relu_reference: Path, judge: Judge) -> None:
    for path in (relu_reference, relu_reference.parent):
        read = "os.listdir" if path.is_dir() else "open"
        verdict = judge(relu_reference, trying(f"return {read}({str(path)!r})"))
        assert verdict.accepted, verdict.reason


@needs_walls
def test_no_connection_reaches_this_machine(relu_reference: Path, judge: Judge) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        verdict = judge(relu_reference, trying(f"return socket.create_connection(('127.0.0.1', {port}), 2)"))
    assert verdict.accepted, verdict.reason


@needs_walls
def test_no_abstract_socket_reaches_this_machine(relu_reference: Path, judge: Judge) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("")  # the system picks an abstract name
        server.listen()
        name = server.getsockname()
        body = f"s = socket.socket(socket.AF_UNIX)\ns.connect({name!r})\nreturn 'connected'"
        with socket.socket(socket.AF_UNIX) as outside:
            outside.connect(name)
        verdict = judge(relu_reference, trying(body))
    assert verdict.accepted, verdict.reason


def test_secrets_of_the_environment_stay_outside(
    relu_reference: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUB_TOKEN_FOR_TESTS", "secret-value")
    body = "return 'secret-value' in open('/proc/self/environ').read() or os.environ.get('HUB_TOKEN_FOR_TESTS')"
    verdict = judge(relu_reference, trying(body))
    assert verdict.accepted, verdict.reason


def test_the_attempts_can_succeed(relu_reference: Path, judge: Judge) -> None:
    """Guards the tests above: an attempt that gets something is seen."""
    verdict = judge(relu_reference, trying("return os.getpid()"))
    assert (verdict.verdict, verdict.category) == ("rejected", "build_failed")
    assert "got out" in str(verdict.reason)


def test_memory_is_watched_and_named(relu_reference: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psutil.virtual_memory", Available)
    hungry = RELU.format(name="ModelNew") + "\nheld = [bytearray(1 << 26) for _ in range(64)]\n"
    verdict = judge(relu_reference, hungry)
    assert (verdict.verdict, verdict.category) == ("rejected", "out_of_memory")
    assert "GiB" in str(verdict.reason)


class Available:
    """A machine with 2 GiB to spare, so that the limit is 1 GiB."""

    available = 2 << 30
