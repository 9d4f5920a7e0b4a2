"""Leaving when nobody is there any more: the terminal was closed, or a signal asks for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

SIGNALS = (signal.SIGHUP, signal.SIGTERM)
LEAVING_SECONDS = 5.0  # for leaving in order, after that the process ends itself
STATUS = 128  # exit status of a program that a signal ended, less the signal
_OVER = 0  # in place of a signal's number


@contextlib.contextmanager
def heard(leave: Callable[[int], None], leaving: threading.Event) -> Iterator[None]:
    """Sets `leaving` and calls `leave` in the running loop with an exit status, once a signal or a hang-up asks for it.

    A terminal that is gone does not always tell by a signal: not to a process of another session, nor to one that
    ignores it, nor while the session's leader lives on. Reading from it then gives nothing at once and for ever. So a
    thread of its own waits for the hang-up and for the signals, at no cost; it does not depend on the loop, which an
    editor or a terminal that takes nothing more may hold up. Where leaving in order does not come to its end it ends
    the process, whose children then end by themselves.
    """
    loop = asyncio.get_running_loop()
    woken, wake = os.pipe()
    streams = _streams()  # terminals that are gone cannot be told from files

    def told(number: int, _frame: FrameType | None) -> None:
        os.write(wake, bytes([number]))

    def watch() -> None:
        poll = select.poll()
        for stream in streams:
            poll.register(stream, 0)  # a hang-up is told in any case
        poll.register(woken, select.POLLIN)
        asked, until = 0, 0.0
        while True:
            ready = dict(poll.poll(max(0.0, until - time.monotonic()) * 1000 if asked else None))
            if not ready:
                os._exit(STATUS + asked)
            if ready.keys() - {woken}:
                _let_go(streams)
                for stream in streams:
                    poll.unregister(stream)
                streams.clear()
            number = os.read(woken, 1)[0] if woken in ready else int(signal.SIGHUP)
            if number == _OVER:
                return
            if not asked:
                asked, until = number, time.monotonic() + LEAVING_SECONDS
                leaving.set()
                with contextlib.suppress(RuntimeError):  # the loop has come to its end
                    loop.call_soon_threadsafe(leave, STATUS + number)

    before = {number: signal.signal(number, told) for number in SIGNALS}
    thread = threading.Thread(target=watch, name="hang-up", daemon=True)
    thread.start()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.write(wake, bytes([_OVER]))
        thread.join()
        for end in (woken, wake):
            os.close(end)


def _streams() -> list[int]:
    """Descriptors of the standard streams that end with whoever looks on: terminals, or the pipes to a browser."""
    browser = bool(os.environ.get("TEXTUAL_DRIVER"))
    streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    return [stream.fileno() for stream in streams if stream is not None and (browser or stream.isatty())]


def _let_go(streams: list[int]) -> None:
    """What is still written goes nowhere, instead of failing."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in streams:
        os.dup2(nowhere, stream)
    os.close(nowhere)
