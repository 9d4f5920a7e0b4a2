"""The playbook as a policy: known optimisations, found by tracing the reference in a child process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from cudal1_core.errors import PolicyError
from cudal1_core.playbook.messages import Ask, Finished, Tried, Written, parse_reply
from cudal1_core.policies import children
from cudal1_core.policies.base import Fragment, Judged, Prompt

LONGEST_LINE = 1 << 24  # bytes of one reply
SECONDS_TO_END = 2.0


class PlaybookPolicy:
    """Keeps one child alive between rounds; the child imports torch and the reference, this process does not.

    What the child and the reference print goes to `log`, or nowhere.
    """

    name = "playbook"
    converses = False

    def __init__(self, log: Path | None = None) -> None:
        self._log = log
        self._child: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._cache: tempfile.TemporaryDirectory[str] | None = None

    async def prepare(self) -> None:
        async with self._turn:
            await self._started()

    async def fit(self, texts: Sequence[str]) -> int:
        return 0  # no model reads it

    async def generate(self, prompt: Prompt, n: int) -> AsyncIterator[Fragment]:
        """One fragment a candidate. Raises PolicyError."""
        async with self._turn:
            child = await self._started()
            finished = False
            try:
                await self._send(child, _ask(prompt, n))
                index = 0
                while not finished:
                    reply = await self._reply(child)
                    if isinstance(reply, Written):
                        yield Fragment(index, reply.text, done=True, title=reply.title, techniques=reply.techniques)
                        index += 1
                        continue
                    finished = True
                    if reply.trouble:
                        raise PolicyError(
                            "The playbook cannot read the reference",
                            reply.trouble,
                            "Run the file with python to see where it fails.",
                        )
            finally:
                if not finished:  # the rest of an abandoned answer must not be taken for the next one
                    await self._end()

    async def close(self) -> None:
        await self._end()

    async def _started(self) -> asyncio.subprocess.Process:
        if self._child is not None and self._child.returncode is None:
            return self._child
        self._cache = self._cache or tempfile.TemporaryDirectory(prefix="cudal1-playbook-")
        try:
            with children.words_to(self._log) as errors:
                self._child = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-B",
                    "-m",
                    "cudal1_core.playbook",
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                    limit=LONGEST_LINE,
                    env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "TORCHINDUCTOR_CACHE_DIR": self._cache.name},
                )
        except OSError as error:
            raise PolicyError("The playbook did not start", str(error), "Check the Python installation.") from error
        return self._child

    async def _send(self, child: asyncio.subprocess.Process, ask: Ask) -> None:
        assert child.stdin is not None
        try:
            child.stdin.write(ask.line().encode())
            await child.stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise self._died() from error

    async def _reply(self, child: asyncio.subprocess.Process) -> Written | Finished:
        assert child.stdout is not None
        try:
            line = await child.stdout.readline()
            if not line:
                raise self._died()
            return parse_reply(line.decode())
        except (ValueError, KeyError, json.JSONDecodeError) as error:
            raise PolicyError(
                "The playbook gave an answer that makes no sense",
                str(error),
                "Start again; report it if it recurs.",
            ) from error

    def _died(self) -> PolicyError:
        where = f"Its last words are in {self._log}." if self._log is not None else ""
        return PolicyError(
            "The playbook's process ended",
            "It stopped while it was reading the reference or writing candidates. " + where,
            "Check that torch can be imported and that the reference does not end the process.",
        )

    async def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await children.end(child, SECONDS_TO_END)
        if self._cache is not None:
            self._cache.cleanup()
            self._cache = None


def _ask(prompt: Prompt, n: int) -> Ask:
    task = prompt.task
    tried = tuple(_tried(judged) for judged in prompt.history)
    return Ask(task.path, task.source, task.model, task.device, n, prompt.seed, tried)


def _tried(judged: Judged) -> Tried:
    candidate, verdict = judged.candidate, judged.verdict
    return Tried(candidate.source_hash, candidate.techniques, verdict.accepted, verdict.speedup, judged.fed)
