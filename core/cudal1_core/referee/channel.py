"""Messages between the referee's processes: length-prefixed frames on a Unix stream socket.

What a candidate's process sends is a claim: bounded JSON, never unpickled. What the trusted side sends to a
runner may be pickled, since a runner can only harm itself.
"""

from __future__ import annotations

import json
import pickle
import select
import socket
import struct
import time
from typing import Any

_HEADER = struct.Struct("<I")
CLAIM_LIMIT = 1 << 20  # bytes of one claim
TRUSTED_LIMIT = 1 << 28


class ChannelClosedError(Exception):
    """The other side is gone."""


class ChannelTimeoutError(Exception):
    """Nothing came within the time allowed."""


class ClaimError(Exception):
    """A claim breaks the form: too long, or not JSON."""


class Channel:
    """One end of a socket pair, blocking, with a deadline for every receive."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.fds: list[int] = []  # descriptors received and not yet taken

    @classmethod
    def from_fd(cls, fd: int) -> Channel:
        return cls(socket.socket(fileno=fd))

    def send_json(self, message: Any, fds: list[int] | None = None) -> None:
        self._send(json.dumps(message).encode(), fds)

    def send_pickle(self, message: Any, fds: list[int] | None = None) -> None:
        self._send(pickle.dumps(message, protocol=5), fds)

    def recv_json(self, timeout: float | None, limit: int = CLAIM_LIMIT) -> Any:
        """A claim. Descriptors that a runner sends along are not taken, so the system closes them."""
        data = self._recv(timeout, limit, with_fds=False)
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ClaimError(f"a message of {len(data)} bytes is not JSON") from error

    def recv_pickle(self, timeout: float | None = None) -> Any:
        """Only for messages from the trusted side."""
        return pickle.loads(self._recv(timeout, TRUSTED_LIMIT, with_fds=True))

    def take_fds(self) -> list[int]:
        taken, self.fds = self.fds, []
        return taken

    def close(self) -> None:
        self.socket.close()

    def _send(self, data: bytes, fds: list[int] | None) -> None:
        frame = _HEADER.pack(len(data)) + data
        try:
            if fds:
                sent = socket.send_fds(self.socket, [frame], fds)
                frame = frame[sent:]
            if frame:
                self.socket.sendall(frame)
        except OSError as error:
            raise ChannelClosedError(str(error)) from error

    def _recv(self, timeout: float | None, limit: int, *, with_fds: bool) -> bytes:
        deadline = None if timeout is None else time.monotonic() + timeout
        (length,) = _HEADER.unpack(self._read(_HEADER.size, deadline, with_fds))
        if length > limit:
            raise ClaimError(f"a message of {length} bytes, more than {limit}")
        return self._read(length, deadline, with_fds)

    def _read(self, count: int, deadline: float | None, with_fds: bool) -> bytes:
        parts = []
        while count:
            if deadline is not None:
                left = max(0.0, deadline - time.monotonic())
                if not select.select([self.socket], [], [], left)[0]:
                    raise ChannelTimeoutError
            try:
                if with_fds:
                    data, fds, _, _ = socket.recv_fds(self.socket, min(count, 1 << 20), 64)
                    self.fds += fds
                else:
                    data = self.socket.recv(min(count, 1 << 20))
            except OSError as error:
                raise ChannelClosedError(str(error)) from error
            if not data:
                raise ChannelClosedError("closed")
            parts.append(data)
            count -= len(data)
        return b"".join(parts)


def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
