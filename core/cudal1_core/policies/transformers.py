"""A local model through transformers, in a child process that keeps it loaded between rounds."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import importlib.util
import itertools
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from cudal1_core.errors import PolicyError, UsageError
from cudal1_core.policies import children, lines
from cudal1_core.policies.base import Fragment, Prompt, messages
from cudal1_core.policies.weights import Weights

SECONDS_TO_END = 2.0
LEAST_ANSWER = 512  # tokens that a prompt must leave for the answer

Said = tuple[str, dict[str, Any]]


class TransformersPolicy:
    """What the child and its libraries print goes to `log`, or nowhere."""

    name = "transformers"
    converses = True

    def __init__(self, weights: Weights, log: Path | None = None) -> None:
        if importlib.util.find_spec("transformers") is None:
            raise UsageError(
                "The transformers policy needs transformers",
                "It is not part of the ordinary set-up.",
                "pip install 'cudal1-tui[transformers]'",
            )
        self._weights = weights
        self._log = log
        self._child: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()
        self._reader: asyncio.Task[None] | None = None
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Queue[Said]] = {}
        self._prompts: dict[int, int] = {}  # requests by identity of their prompt
        self._context = 0  # tokens
        self._tell: Callable[[str], None] = lambda what: None

    def listen(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    async def prepare(self) -> None:
        await self._started()

    async def fit(self, texts: Sequence[str]) -> int:
        child = await self._started()
        async with self._asked(child, "count", texts=list(texts)) as (_, answers):
            counts = (await self._answer(answers))[1]["counts"]
        for index, count in enumerate(counts):
            if count + LEAST_ANSWER <= self._context:
                return index
        raise PolicyError(
            "The task is too long for this model",
            f"Without any earlier code the prompt has {counts[-1]} tokens. The model's context holds {self._context}, "
            f"of which an answer needs {LEAST_ANSWER}.",
            "Take a model with a longer context, or shorten the reference.",
        )

    async def generate(self, prompt: Prompt, n: int) -> AsyncIterator[Fragment]:
        """n streams at once. Raises PolicyError; leaving early cancels them."""
        child = await self._started()
        weights = self._weights
        how = {"longest": weights.longest, "temperature": weights.temperature, "top_p": weights.top_p}
        seed = prompt.seed + len(prompt.turns)
        left = set(range(n))
        async with self._asked(child, "generate", messages=messages(prompt), n=n, seed=seed, **how) as (id, answers):
            self._prompts[builtins.id(prompt)] = id
            try:
                while left:
                    _, said = await self._answer(answers)
                    if said["index"] not in left:
                        continue  # dropped, and on its way already
                    left -= {said["index"]} if said["done"] else set()
                    yield Fragment(said["index"], said["text"], done=said["done"])
            finally:
                del self._prompts[builtins.id(prompt)]
                if left:
                    with contextlib.suppress(PolicyError):
                        await self._send(child, "cancel", id=id, index=None)

    async def drop(self, prompt: Prompt, index: int) -> None:
        """Ends one stream; the others go on."""
        id = self._prompts.get(builtins.id(prompt))
        if id is not None and self._child is not None:
            self._answers[id].put_nowait(("piece", {"index": index, "text": "", "done": True}))
            await self._send(self._child, "cancel", id=id, index=index)

    async def adapt(self, adapter: Path) -> None:
        """The next streams come from this LoRA adapter; open ones end on the old one. Raises PolicyError."""
        child = await self._started()
        async with self._asked(child, "adapter", path=str(adapter)) as (_, answers):
            await self._answer(answers)

    async def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await children.end(child, SECONDS_TO_END)
        if self._reader is not None:
            self._reader.cancel()

    async def _started(self) -> asyncio.subprocess.Process:
        async with self._starting:
            if self._child is not None and self._child.returncode is None:
                return self._child
            child = self._child = await self._spawn()
            try:
                await self._load(child)
            except BaseException:
                await self.close()
                raise
            self._reader = asyncio.create_task(self._read(child), name="generator")
            return child

    async def _spawn(self) -> asyncio.subprocess.Process:
        weights = self._weights
        words = ["--model", weights.model, "--device", weights.device, "--dtype", weights.dtype]
        words += ["--adapter", str(weights.adapter)] if weights.adapter else []
        try:
            with children.words_to(self._log) as errors:
                return await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "cudal1_core.policies.generator",
                    *words,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                    limit=lines.LONGEST_LINE,
                    env={**os.environ, "TOKENIZERS_PARALLELISM": "false"},
                )
        except OSError as error:
            raise PolicyError("The model's process did not start", str(error)) from error

    async def _load(self, child: asyncio.subprocess.Process) -> None:
        while True:
            word, said = await self._line(child)
            if word == "loading":
                self._tell(said["what"])
            elif word == "ready":
                self._tell("")
                self._context = said["context"]
                return
            else:
                raise PolicyError(
                    f"The model {self._weights.model} cannot be loaded",
                    " ".join(str(said.get("meaning")).split())[:600],
                    "Give a folder with config.json and weights, a .gguf file, or the id of a model on the hub.",
                )

    async def _read(self, child: asyncio.subprocess.Process) -> None:
        """Hands each answer to whoever asked; at the end of the child all get its trouble."""
        trouble = "The process ended."
        try:
            while True:
                word, said = await self._line(child)
                if (answers := self._answers.get(said["id"])) is not None:
                    answers.put_nowait((word, said))
        except PolicyError as error:
            trouble = error.meaning
        finally:
            for answers in self._answers.values():
                answers.put_nowait(("trouble", {"meaning": trouble}))

    async def _line(self, child: asyncio.subprocess.Process) -> Said:
        assert child.stdout is not None
        try:
            text = await child.stdout.readline()
            if not text:
                where = f" Its last words are in {self._log}." if self._log is not None else ""
                raise PolicyError("The model's process ended", f"It ended by itself.{where}", "Start again.")
            return lines.parse(text.decode())
        except ValueError as error:
            raise PolicyError("The model's process makes no sense", str(error)) from error

    @contextlib.asynccontextmanager
    async def _asked(
        self, child: asyncio.subprocess.Process, word: str, **values: Any
    ) -> AsyncIterator[tuple[int, asyncio.Queue[Said]]]:
        id = next(self._ids)
        answers = self._answers[id] = asyncio.Queue()
        try:
            await self._send(child, word, id=id, **values)
            yield id, answers
        finally:
            del self._answers[id]

    async def _send(self, child: asyncio.subprocess.Process, word: str, **values: Any) -> None:
        assert child.stdin is not None
        try:
            child.stdin.write(lines.line(word, **values).encode())
            await child.stdin.drain()
        except (BrokenPipeError, ConnectionResetError, RuntimeError) as error:
            raise PolicyError("The model's process ended", str(error), "Start again.") from error

    async def _answer(self, answers: asyncio.Queue[Said]) -> Said:
        word, said = await answers.get()
        if word == "trouble":
            raise PolicyError(
                "The model could not write",
                " ".join(str(said["meaning"]).split())[:600],
                "Where memory ran out: fewer candidates with --group, or a smaller model.",
            )
        return word, said
