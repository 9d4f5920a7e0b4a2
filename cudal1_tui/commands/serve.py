"""`cudal1-tui serve`: the workbench in a browser, for this machine alone."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from cudal1_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

HOST = "127.0.0.1"  # never another: whoever reaches the page runs code here
WARNING = """Every visitor of this page starts a run, which executes code as you and keeps the device busy.
It listens on 127.0.0.1 alone; other users of this machine can reach it. Ctrl+C ends it."""


def main(port: int, words: Sequence[str]) -> int:
    """Serves `cudal1-tui WORDS` until Ctrl+C. Raises UsageError where textual-serve or the port is not to be had."""
    try:
        from textual_serve.server import Server
    except ModuleNotFoundError as error:
        raise UsageError("`serve` needs textual-serve", "", "pip install 'cudal1-tui[serve]'") from error
    command = shlex.join([sys.executable, "-m", "cudal1_tui", *words])
    _check_free(port)
    print(f"http://{HOST}:{port}\n{WARNING}", file=sys.stderr, flush=True)
    Server(command, host=HOST, port=port, title="cudal1-tui").serve()
    return 0


def _check_free(port: int) -> None:
    import socket

    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
    except (OSError, OverflowError) as error:
        raise UsageError(f"Port {port} cannot be used", str(error), "Choose another with --port.") from error
