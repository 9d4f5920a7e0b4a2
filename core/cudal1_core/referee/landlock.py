"""Landlock: what a process and its children may touch in the file system, and no TCP at all.

Source: Linux kernel documentation, userspace-api/landlock. ABI 1 is enough; later ABIs add truncate (3),
TCP (4), device ioctl (5), abstract sockets and signals (6).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable

from cudal1_core.referee import linux

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446

_READ = (1 << 0) | (1 << 2) | (1 << 3)  # execute, read file, read directory
_WRITE = 1 << 1
_FILE_ACCESS = (1 << 0) | (1 << 1) | (1 << 2)
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15


class _RulesetAttr(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneathAttr(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def abi() -> int:
    """Version of Landlock the kernel speaks; raises OSError where it has none."""
    return linux.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))


def restrict(read: Iterable[str], write: Iterable[str], devices: Iterable[str]) -> int:
    """Limits this process for good to the given paths; returns the ABI used.

    `read` may be read and executed, `write` also changed, `devices` opened for reading, writing and ioctl.
    Paths that do not exist are passed over. Needs no_new_privs.
    """
    version = abi()
    everything = (1 << 13) - 1
    if version >= 2:
        everything |= 1 << 13
    if version >= 3:
        everything |= _TRUNCATE
    if version >= 5:
        everything |= _IOCTL_DEV
    attr = _RulesetAttr(everything, 0b11 if version >= 4 else 0, 0b11 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = linux.syscall(_CREATE, ctypes.byref(attr), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for path in read:
            _allow(ruleset, path, _READ & everything)
        for path in write:
            _allow(ruleset, path, everything & ~_IOCTL_DEV)
        for path in devices:
            _allow(ruleset, path, (_READ | _WRITE | _TRUNCATE | _IOCTL_DEV) & everything)
        linux.syscall(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)
    return version


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):  # noqa: PTH112
            access &= _FILE_ACCESS | _TRUNCATE | _IOCTL_DEV
        rule = _PathBeneathAttr(access, parent)
        linux.syscall(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), ctypes.byref(rule), ctypes.c_uint32(0))
    finally:
        os.close(parent)
