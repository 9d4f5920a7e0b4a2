"""Leaving when nobody is there any more: the terminal was closed, or a signal asks for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIGNALS = (signal.SIGHUP, signal.SIGTERM)
LEAVING_SECONDS = 5.0  # for leaving in order, after that the process ends itself
STATUS = 128  # exit status of a program that a signal ended, less the signal


@contextlib.contextmanager
def heard(leave: Callable[[int], None]) -> Iterator[None]:
    """Calls `leave` in the running loop with an exit status, once a signal comes or the terminal is gone.

    A terminal that is gone does not always tell by a signal: not to a process of another session, nor to one that
    ignores it. Reading from it then gives nothing at once and for ever, and writing to it fails, which ends Textual's
    thread that writes and blocks whoever hands it more. So a thread of its own waits for the hang-up, at no cost, and
    ends the process where leaving in order does not come to its end; its children then end by themselves.
    """
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, leave, STATUS + number)
    woken, wake = os.pipe()
    over = threading.Event()
    terminals = _terminals()  # once they are gone they cannot be told from files

    def watch() -> None:
        poll = select.poll()
        for terminal in terminals:
            poll.register(terminal, 0)  # a hang-up is told in any case
        poll.register(woken, select.POLLIN)
        if woken in dict(poll.poll()):
            return
        _let_go(terminals)
        with contextlib.suppress(RuntimeError):  # the loop has come to its end
            loop.call_soon_threadsafe(leave, STATUS + signal.SIGHUP)
        if not over.wait(LEAVING_SECONDS):
            os._exit(STATUS + signal.SIGHUP)

    thread = threading.Thread(target=watch, name="hang-up", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        os.write(wake, b"!")
        thread.join()
        for end in (woken, wake):
            os.close(end)
        for number in SIGNALS:
            loop.remove_signal_handler(number)


def _terminals() -> list[int]:
    """Descriptors of the standard streams that are terminals."""
    streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    return [stream.fileno() for stream in streams if stream is not None and stream.isatty()]


def _let_go(terminals: list[int]) -> None:
    """What is still written goes nowhere, instead of failing."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for terminal in terminals:
        os.dup2(nowhere, terminal)
    os.close(nowhere)
