"""What the child processes of policies have in common: where their words go, and their end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def words_to(log: Path | None) -> Iterator[IO[bytes] | int]:
    """For a child's stderr or stdout: the log, opened to be added to, or nowhere."""
    if log is None:
        yield asyncio.subprocess.DEVNULL
        return
    with log.open("ab") as file:
        yield file


async def end(child: asyncio.subprocess.Process, seconds: float) -> None:
    """Kills its process group and waits for it, at most so long."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(child.wait(), seconds)
    transport = getattr(child, "_transport", None)
    if transport is not None:
        transport.close()
