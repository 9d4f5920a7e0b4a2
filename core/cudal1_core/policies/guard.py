"""Runs a command and ends it, with all that it started, as soon as whoever started this is gone.

`python -m cudal1_core.policies.guard COMMAND...`: stdin is a pipe that nobody writes to; its end is the sign.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading


def main() -> int:
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    threading.Thread(target=_watch, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    return child.wait()


def _watch() -> None:
    while os.read(0, 4096):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
