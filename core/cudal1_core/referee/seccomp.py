"""Seccomp: system calls that no candidate needs and through which it could reach beyond its walls.

A list of what is refused, so that compilers, torch and CUDA keep all that they use. Besides what needs rights that a
candidate has given up, it closes ways that no namespace and no Landlock closes: connecting to a Unix socket by its
path (a container engine's, a session's), sockets to the machine around this one, namespaces of its own, the memory
of other processes, and the limits of its supervisor. Source: Linux kernel documentation, userspace-api/seccomp_filter.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from dataclasses import dataclass

from cudal1_core.referee import linux

_MODE_FILTER = 1
_SPEC_ALLOW = 1 << 2  # kernels before 5.16 would otherwise slow down speculation in a filtered process

_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000  # the latter with an error number
# instructions of classic BPF: load a word, jumps, a mask, the end
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _MASK, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
_X32 = 0x40000000  # the x32 interface, another way to the same calls

_NAMESPACES = 0x7E020000  # the flags of clone that make one
_FAMILIES = (1, 2, 10, 16)  # Unix, IPv4, IPv6, netlink; others do not all live in the network namespace
_UNIX, _DATAGRAM, _TYPE_MASK = 1, 2, 0xF

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column of the tables below, audit architecture
_SECCOMP = (317, 277)
_CLONE, _SOCKET, _SENDTO, _LIMITS = (56, 220), (41, 198), (44, 206), (302, 261)
_CONNECT = (42, 203)
_AFFINITY = (203, 122)  # sched_setaffinity
_FORBIDDEN = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "syslog": (103, 116),
}
# as if the kernel did not know them, so that callers take the older way
_UNKNOWN = {
    "clone3": (435, 435),  # its flags lie in memory, where a filter cannot look
    "io_uring_setup": (425, 425),  # works on in the kernel while its process is stopped
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One word of a call's arguments, masked where a mask is given, against an operand."""

    word: int  # 0 is the low half of the first argument, 1 its high half, 2 the low half of the second
    jump: int  # _EQUAL or _ANY_BIT
    operand: int
    holds: bool  # whether it must hold, or must not, for the rule to refuse
    mask: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """The call `number` is refused with `error` where every test goes that way."""

    number: int
    error: int
    tests: tuple[Condition, ...] = ()


def restrict(*, refuse: bool = True, pinned: bool = False) -> None:
    """Filters this process and its children for good. Needs no_new_privs; raises OSError where there is no seccomp.

    A filter that refuses nothing makes system calls cost what they cost under one that does. `pinned`: it stays on the
    cores that it was given.
    """
    column, architecture = _machine()
    code = program(rules(column, pinned=pinned) if refuse else [], architecture)
    buffer = ctypes.create_string_buffer(code, len(code))
    described = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    for flags in (_SPEC_ALLOW, 0):
        try:
            linux.syscall(_SECCOMP[column], ctypes.c_uint(_MODE_FILTER), ctypes.c_uint(flags), described)
            return
        except OSError as error:
            if error.errno != errno.EINVAL or not flags:
                raise


def rules(column: int, *, pinned: bool = False) -> list[Rule]:
    """What is refused on one architecture."""
    other_family = tuple(Condition(0, _EQUAL, family, holds=False) for family in _FAMILIES)
    is_unix = Condition(0, _EQUAL, _UNIX, holds=True)
    is_datagram = Condition(2, _EQUAL, _DATAGRAM, holds=True, mask=_TYPE_MASK)
    of_another = Condition(0, _EQUAL, 0, holds=False)
    new_namespace = Condition(0, _ANY_BIT, _NAMESPACES, holds=True)
    to_an_address = [Condition(word, _EQUAL, 0, holds=False) for word in (8, 9)]  # either half of the pointer
    found = [
        *(Rule(_SENDTO[column], errno.EPERM, (half,)) for half in to_an_address),
        Rule(_CLONE[column], errno.EPERM, (new_namespace,)),
        Rule(_LIMITS[column], errno.EPERM, (of_another,)),
        Rule(_SOCKET[column], errno.EAFNOSUPPORT, other_family),
        Rule(_SOCKET[column], errno.EACCES, (is_unix, is_datagram)),  # unconnected, sendmsg reaches any path with one
        Rule(_CONNECT[column], errno.ENOENT),  # as where nobody listens
    ]
    found += [Rule(numbers[column], errno.EPERM) for numbers in _FORBIDDEN.values()]
    if pinned:
        found.append(Rule(_AFFINITY[column], errno.EPERM))
    return found + [Rule(numbers[column], errno.ENOSYS) for numbers in _UNKNOWN.values()]


def program(refused: list[Rule], architecture: int) -> bytes:
    """The filter in classic BPF, 8 bytes an instruction."""
    code = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_EQUAL, architecture, 1, 0),
        _step(_RETURN, _REFUSE | errno.ENOSYS),
        _step(_LOAD, _NUMBER),
        _step(_AT_LEAST, _X32, 0, 1),
        _step(_RETURN, _REFUSE | errno.ENOSYS),
    ]
    for rule in refused:
        code += _refusal(rule)
    return b"".join([*code, _step(_RETURN, _ALLOW)])


def _refusal(rule: Rule) -> list[bytes]:
    """One rule; it expects the call's number loaded and leaves it so."""
    code = [_step(_RETURN, _REFUSE | rule.error)]
    for test in reversed(rule.tests):
        skip = len(code)  # over what is left
        yes, no = (0, skip) if test.holds else (skip, 0)
        code.insert(0, _step(test.jump, test.operand, yes, no))
        if test.mask is not None:
            code.insert(0, _step(_MASK, test.mask))
        code.insert(0, _step(_LOAD, 16 + 4 * test.word))
    if rule.tests:
        code.append(_step(_LOAD, _NUMBER))
    return [_step(_EQUAL, rule.number, 0, len(code)), *code]


def _step(instruction: int, operand: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("<HBBI", instruction, yes, no, operand)


def _machine() -> tuple[int, int]:
    name = os.uname().machine
    if name not in _MACHINES:
        raise OSError(errno.ENOSYS, f"no filter is written for {name}")
    return _MACHINES[name]
