"""Candidates from any server that speaks OpenAI's chat completions: llama.cpp, vLLM, transformers serve, hosted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from cudal1_core.errors import PolicyError
from cudal1_core.policies.base import Fragment, Prompt, messages
from cudal1_core.policies.chat import BrokenOffError, ChatServer

BYTES_A_TOKEN = 3.0  # of source code, on the safe side


class OpenAIPolicy:
    """`model` may be left out where the server has one. At most `streams` requests are open at once."""

    name = "openai"
    converses = True

    def __init__(
        self,
        url: str,
        model: str | None = None,
        *,
        streams: int = 8,
        temperature: float = 0.8,
        longest: int | None = None,  # tokens of an answer; None leaves it to the server
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._server = ChatServer(url, model, pause=pause)
        self._streams = asyncio.Semaphore(streams)
        self._temperature = temperature
        self._longest = longest
        self._open: dict[int, list[asyncio.Task[None]]] = {}  # writers by identity of their prompt
        self._fitted = 0  # bytes of the longest prompt that the server has read

    async def prepare(self) -> None:
        """Finds a wrong address or model before the first prompt is made. Raises PolicyError."""
        await self._server.model()

    async def fit(self, texts: Sequence[str]) -> int:
        """By the context that the server names, in its list of models or in a refusal, and an estimate of tokens.

        A server that names none is asked to read a prompt that is longer than all before.
        """
        await self._server.model()
        sizes = [len(text.encode("utf-8", "replace")) for text in texts]
        if self._server.context is None and sizes[0] > self._fitted:
            question = {"messages": [{"role": "user", "content": texts[0]}]}
            if await self._server.fits(question):
                self._fitted = sizes[0]
        if self._server.context is None:
            return 0
        room = self._server.context - (self._longest or self._server.context // 4)
        fitting = (index for index, size in enumerate(sizes) if size / BYTES_A_TOKEN <= room)
        return next(fitting, len(texts) - 1)

    async def generate(self, prompt: Prompt, n: int) -> AsyncIterator[Fragment]:
        """n candidates side by side. A stream that breaks off ends its candidate, and another is asked for once.

        Raises PolicyError where not one candidate has any text; what fails beside others is told by its last fragment.
        """
        await self._server.model()
        arrived: asyncio.Queue[Fragment] = asyncio.Queue()

        async def write(index: int, again: int | None) -> None:
            try:
                async with self._streams:
                    async for text in self._server.answer(self._body(prompt, index), patient=again is None):
                        arrived.put_nowait(Fragment(index, text))
                arrived.put_nowait(Fragment(index, "", done=True))
            except asyncio.CancelledError:
                arrived.put_nowait(Fragment(index, "", done=True))
                raise
            except BrokenOffError as error:
                arrived.put_nowait(Fragment(index, "", done=True, trouble=error))
                if again is not None:
                    await write(again, None)
            except PolicyError as error:
                arrived.put_nowait(Fragment(index, "", done=True, trouble=error))

        writing = [asyncio.create_task(write(index, n + index)) for index in range(n)]
        everything = asyncio.gather(*writing, return_exceptions=True)
        everything.add_done_callback(lambda _: arrived.put_nowait(_END))
        self._open[id(prompt)] = writing
        begun: set[int] = set()
        failures: list[Fragment] = []
        try:
            while (told := await arrived.get()) is not _END:
                if told.text:
                    begun.add(told.index)
                if told.trouble is not None and told.index not in begun:
                    failures.append(told)  # of a candidate that nobody has seen
                else:
                    yield told
            for task in writing:
                if not task.cancelled():
                    task.result()
            if failures and not begun:
                assert failures[0].trouble is not None
                raise failures[0].trouble
            for failure in failures:
                yield failure
        finally:
            del self._open[id(prompt)]
            for task in writing:
                task.cancel()
            await asyncio.gather(*writing, return_exceptions=True)

    async def drop(self, prompt: Prompt, index: int) -> None:
        """Ends one stream, or what is written in its place; the others go on."""
        if writing := self._open.get(id(prompt)):
            writing[index % len(writing)].cancel()

    async def close(self) -> None:
        await self._server.close()

    def _body(self, prompt: Prompt, index: int) -> dict[str, Any]:
        body: dict[str, Any] = {
            "messages": messages(prompt),
            "temperature": self._temperature,
            "seed": (prompt.seed + index) % 2**31,
        }
        return body if self._longest is None else {**body, "max_tokens": self._longest}


_END = Fragment(-1, "")
