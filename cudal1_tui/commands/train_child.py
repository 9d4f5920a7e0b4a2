"""The trainer's process: started, listened to, and ended together with this one."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from cudal1_core.errors import UsageError
from cudal1_core.events import Event, RunFinished, from_json

from cudal1_tui.commands import train_arguments
from cudal1_tui.commands.train_progress import TrainProgress, print_report

if TYPE_CHECKING:
    import argparse
    from types import FrameType

LOG = "log.txt"  # in the folder of the training: what libraries print
KNOWN = (0, 2, 3, 130, 143)  # statuses of the trainer; any other is a death
LAST_WORDS = 2000  # characters of the log that are shown where the process ends without a word


def stages(options: argparse.Namespace) -> int:
    """Plays stages. Raises UsageError."""
    _check_installed()
    settings = train_arguments.settings_of(options)
    if options.config is not None and not options.config.is_file():
        raise UsageError(f"--config {options.config}: no such file", "", "`cudal1-tui train config` prints one.")
    out = options.out or train_arguments.default_out(settings, options.config)
    words = [options.stage, "--out", str(out)]
    words += ["--config", str(options.config)] if options.config else []
    words += changes(settings)
    words += ["--dry-run"] if options.dry_run else []
    with _log(None if options.dry_run else out) as log, _Child(words, log, options.processes) as child:
        if options.json:
            for line in child.lines():
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
            return child.status()
        with TrainProgress() as progress:
            for event in child.events():
                progress.tell(event)
            status = child.status()
        progress.end(child.last_words() if not progress.finished and status not in (0, 130, 143) else "")
        return status


def plain(words: list[str]) -> int:
    """Runs what only answers with a text."""
    _check_installed()
    with tempfile.TemporaryFile() as log, _Child(words, log, 1) as child:
        progress = TrainProgress()
        for event in child.events():
            progress.tell(event)
        print_report(progress.report)
        status = child.status()
        if status and not progress.finished:
            print(child.last_words(), file=sys.stderr)
        return status


def changes(settings: list[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


def _check_installed() -> None:
    missing = [name for name in ("trl", "peft", "datasets") if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"Training needs {', '.join(missing)}", "It is not part of the ordinary set-up.",
            "pip install 'cudal1-tui[train]'",
        )  # fmt: skip


@contextlib.contextmanager
def _log(out: Path | None) -> Iterator[IO[bytes]]:
    """The log of the training, to be added to, or one that goes away."""
    if out is None:
        with tempfile.TemporaryFile() as log:
            yield log
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        log = (out / LOG).open("a+b")
    except OSError as error:
        raise UsageError(f"--out {out} cannot be used: {error.strerror}", "The training is kept there.") from error
    with log:
        yield log


class _Child:
    """A context. Ctrl+C and SIGTERM ask the trainer to stop after its step; the second time at once."""

    def __init__(self, words: list[str], log: IO[bytes], processes: int) -> None:
        module = ["-m", "cudal1_training", *words]
        if processes > 1:
            module = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes), *module]
        self._log = log
        self._start = log.seek(0, os.SEEK_END)
        self._command = [sys.executable, "-m", "cudal1_core.policies.guard", sys.executable, *module]
        self._received = 0

    def __enter__(self) -> _Child:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, start_new_session=True
        )
        self._before = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def lines(self) -> Iterator[bytes]:
        assert self._process.stdout is not None
        yield from self._process.stdout

    def events(self) -> Iterator[Event]:
        for line in self.lines():
            with contextlib.suppress(ValueError):  # a library that writes to standard output by itself
                event = from_json(line.decode("utf-8", "replace"))
                yield event
                if isinstance(event, RunFinished):
                    return

    def status(self) -> int:
        """The exit status, once all is said."""
        status = self._process.wait()
        if status and self._received:
            return 128 + self._received
        return status if status in KNOWN else 3

    def last_words(self) -> str:
        self._log.seek(self._start)
        return self._log.read().decode("utf-8", "replace").strip()[-LAST_WORDS:]

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._received = self._received or number
        self._process.send_signal(signal.SIGTERM)
