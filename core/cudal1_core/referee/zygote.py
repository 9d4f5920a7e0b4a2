"""A process that has imported torch, from which every worker is forked warm.

Asked to (a message without descriptors), it also imports what torch imports late, so that no candidate waits for that.
It never touches CUDA, never runs an operator (no thread pool exists when it forks), and holds no seed, no source and
none of the user's environment: what a worker is to be, only that worker reads, since each inherits this process's
memory. It ends when the host's socket closes, and its children end with it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
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
            channel.recv_pickle()
        except ChannelClosedError:
            return
        fds = channel.take_fds()
        if not fds:
            _warm_up()
            continue
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            channel.close()
            random.seed()
            with os.fdopen(fds.pop(0), "rb") as file:
                spec = pickle.load(file)
            sandbox.start(spec, mains[spec.role], *fds)
        for fd in fds:
            os.close(fd)
        with contextlib.suppress(ChannelClosedError):
            channel.send_json({"pid": pid})


def _warm_up() -> None:
    """torch.compile and the profiler both need torch._dynamo, which takes from one second to five to import."""
    with contextlib.suppress(ImportError):
        import torch._dynamo  # noqa: F401


if __name__ == "__main__":
    main()
