"""The Linux system calls that isolation needs and Python 3.11 lacks, through libc."""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID = 2
MS_NODEV = 4
MS_REC = 16384
MS_PRIVATE = 1 << 18

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

_SYS_CAPSET = {"x86_64": 126, "aarch64": 91}

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    _check(
        _libc.mount(
            source.encode(),
            target.encode(),
            kind.encode() if kind else None,
            ctypes.c_ulong(flags),
            data.encode() if data else None,
        ),
        f"mount {target}",
    )


def prctl(option: int, *args: int) -> None:
    padded = [ctypes.c_ulong(a) for a in (*args, 0, 0, 0, 0)[:4]]
    _check(_libc.prctl(option, *padded), f"prctl {option}")


def syscall(number: int, *args: object) -> int:
    return _check(_libc.syscall(ctypes.c_long(number), *args), f"syscall {number}")


def keep_freed_memory() -> None:
    """Lets malloc keep what is freed, and map only blocks above the 32 MiB that its own threshold grows to.

    Otherwise the first block of calls after a shorter one pays page faults for every output that is held.
    """
    mmap_threshold, trim_threshold = -3, -1
    _libc.mallopt(mmap_threshold, 32 << 20)
    _libc.mallopt(trim_threshold, (1 << 31) - 1)


def spoil_fresh_memory(on: bool) -> None:
    """Whether what malloc gives out is filled with bytes of 0x7f (floats of 3e38), so that it is never zero by luck."""
    perturb = -6
    _libc.mallopt(perturb, 0x80 if on else 0)  # what is given out is filled with the complement


def drop_capabilities() -> None:
    """Empties every capability set of this thread, for good."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            break
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    syscall(_SYS_CAPSET[os.uname().machine], ctypes.byref(header), ctypes.byref(data))


def map_own_user(uid: int, gid: int) -> None:
    """In a fresh user namespace: this user and group, and nobody else, under the same numbers."""
    for name, text in (("setgroups", "deny"), ("gid_map", f"{gid} {gid} 1"), ("uid_map", f"{uid} {uid} 1")):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
            file.write(text)
