"""A process that has imported torch and nothing else, from which every worker is forked warm.

It never touches CUDA, never runs an operator (no thread pool exists when it forks), and holds no seed and no
source. It ends when the host's socket closes, and its children end with it.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys

from cudal1_core.referee import sandbox
from cudal1_core.referee.channel import Channel, ChannelClosedError


def main() -> None:
    channel = Channel.from_fd(int(sys.argv[1]))
    import torch  # noqa: F401

    from cudal1_core.referee import candidate_worker, reference_worker

    mains = {"reference": reference_worker.main, "candidate": candidate_worker.main}
    sys.dont_write_bytecode = True  # no __pycache__ beside anybody's files
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    channel.send_json({"ready": os.getpid()})
    while True:
        try:
            spec = channel.recv_pickle()
        except ChannelClosedError:
            return
        fds = channel.take_fds()
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            channel.close()
            random.seed()
            sandbox.start(spec, mains[spec.role], *fds)
        for fd in fds:
            os.close(fd)
        with contextlib.suppress(ChannelClosedError):
            channel.send_json({"pid": pid})


if __name__ == "__main__":
    main()
