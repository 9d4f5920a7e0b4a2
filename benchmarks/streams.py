"""What the benchmarks of the screen share: text that streams, and a program in a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

# The head of a program that is played: tokens, so many a second, dealt to several streams in turn.
HEAD = """
import asyncio, sys
TOKENS = ["x", " =", " tl", ".load", "(", "pointer", " +", " i", ")\\n"]

async def tokens(rate, streams=1):
    number = 0
    while True:
        if rate > 0:
            yield number % streams, TOKENS[number // streams % len(TOKENS)]
            number += 1
        await asyncio.sleep(1 / rate if rate > 0 else 3600)
"""


@contextmanager
def playing(program: str, *words: str, size: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Process id and terminal of HEAD and the program; it is killed at the end. `size`: columns and rows."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
        os.execv(sys.executable, [sys.executable, "-c", HEAD + program, *words])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    try:
        yield pid, terminal
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
