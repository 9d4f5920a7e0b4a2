"""Candidates from any server that speaks OpenAI's chat completions: llama.cpp, vLLM, transformers serve, hosted.

Every candidate is one streamed request, so that servers which know no `n` serve as well, and leaving a stream is
what cancels it. The key comes from the environment, goes into one header, and is taken out of everything told.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
from httpx_sse import SSEError, aconnect_sse

from cudal1_core.errors import PolicyError, UsageError
from cudal1_core.policies.base import Fragment, Prompt, messages

KEY = "CUDAL1_API_KEY"
OPENAI_KEY = "OPENAI_API_KEY"  # sent to OpenAI alone, never to an address that merely speaks its language
TRIES = 5  # of one request, until its first token
LONGEST_WAIT_S = 60.0  # a server that wants more is not waited for
CONNECT_S = 10.0
SILENCE_S = 300.0  # between two pieces; reading a long prompt on a slow machine takes minutes
BYTES_A_TOKEN = 3.0  # of source code, on the safe side
LOOPBACK = ("localhost", "127.0.0.1", "::1")
PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})  # statuses worth another try


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
        self._url = base_url(url)
        self._model = model
        self._looked = False  # whether the server was asked for its models
        self._context: int | None = None  # tokens; None where the server does not say
        self._streams = asyncio.Semaphore(streams)
        self._temperature = temperature
        self._longest = longest
        self._pause = pause
        self._key = _key(self._url)
        self._client = httpx.AsyncClient(
            base_url=self._url,
            headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            timeout=httpx.Timeout(SILENCE_S, connect=CONNECT_S),
            limits=httpx.Limits(max_connections=None),
            trust_env=self._url.host not in LOOPBACK,  # no proxy stands between this machine and itself
        )

    async def prepare(self) -> None:
        """Finds a wrong address or model before the first prompt is made. Raises PolicyError."""
        await self._choose_model()

    async def fit(self, texts: Sequence[str]) -> int:
        """By the context the server names and an estimate of tokens; what it does not name, it judges itself."""
        await self._choose_model()
        if self._context is None:
            return 0
        room = self._context - (self._longest or self._context // 4)
        fitting = (index for index, text in enumerate(texts) if len(text.encode()) / BYTES_A_TOKEN <= room)
        return next(fitting, len(texts) - 1)

    async def generate(self, prompt: Prompt, n: int) -> AsyncIterator[Fragment]:
        """n candidates side by side. Raises PolicyError; what was streamed until then stays with the run."""
        model = await self._choose_model()
        arrived: asyncio.Queue[Fragment | BaseException] = asyncio.Queue()

        async def write(index: int) -> None:
            try:
                async with self._streams:
                    async for text in self._answer(self._body(prompt, model, index)):
                        arrived.put_nowait(Fragment(index, text))
                arrived.put_nowait(Fragment(index, "", done=True))
            except BaseException as error:
                arrived.put_nowait(error)
                raise

        writing = [asyncio.create_task(write(index)) for index in range(n)]
        try:
            left = n
            while left:
                told = await arrived.get()
                if isinstance(told, BaseException):
                    raise told
                left -= told.done
                yield told
        finally:
            for task in writing:
                task.cancel()
            await asyncio.gather(*writing, return_exceptions=True)

    async def close(self) -> None:
        await self._client.aclose()

    def _body(self, prompt: Prompt, model: str, index: int) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": model,
            "messages": messages(prompt),
            "stream": True,
            "temperature": self._temperature,
            "seed": (prompt.seed + index) % 2**31,
        }
        return body if self._longest is None else {**body, "max_tokens": self._longest}

    async def _answer(self, body: dict[str, Any]) -> AsyncIterator[str]:
        """Pieces of one answer. Tried again until the first piece has come, never after it."""
        for attempt in range(1, TRIES + 1):
            begun = False
            try:
                async for piece in self._stream(body):
                    begun = True
                    yield piece
                return
            except _Passing as trouble:
                if attempt == TRIES:
                    raise trouble.error from None
                wait = trouble.wait if trouble.wait is not None else random.uniform(0.5, 1.0) * 2 ** (attempt - 1)
                if wait > LONGEST_WAIT_S:
                    raise trouble.error from None
                await self._pause(wait)
            except (httpx.TransportError, SSEError, json.JSONDecodeError) as error:
                if begun:
                    raise self._broke_off(str(error) or type(error).__name__) from error
                if attempt == TRIES or isinstance(error, httpx.ConnectError | httpx.UnsupportedProtocol | SSEError):
                    raise self._no_server(error) from error
                await self._pause(random.uniform(0.5, 1.0) * 2 ** (attempt - 1))

    async def _stream(self, body: dict[str, Any]) -> AsyncIterator[str]:
        ended = False
        async with aconnect_sse(self._client, "POST", "chat/completions", json=body) as source:
            if not source.response.is_success:
                await source.response.aread()
                self._refused(source.response, body["model"])
            async for event in source.aiter_sse():
                if event.data.strip() == "[DONE]":
                    return
                chunk = json.loads(event.data)
                if not isinstance(chunk, dict) or chunk.get("error"):
                    raise self._broke_off(_message(chunk))
                for choice in chunk.get("choices") or ():
                    ended = ended or bool(choice.get("finish_reason"))
                    if text := (choice.get("delta") or {}).get("content"):
                        yield text
        if not ended:
            raise self._broke_off("The connection was closed before the answer was complete.")

    async def _choose_model(self) -> str:
        """The model named, or the only one there is. A server need not list a model that was named."""
        if self._model is not None and self._looked:
            return self._model
        try:
            listed = await self._list()
        except PolicyError:
            if self._model is None:
                raise
            listed = {}
        self._looked = True
        if self._model is None:
            if len(listed) != 1:
                names = ", ".join(list(listed)[:20]) or "none"
                raise PolicyError(f"Which model of {self._url}?", f"It has: {names}.", "Add --model NAME.")
            (self._model,) = listed
        self._context = listed.get(self._model)
        return self._model

    async def _list(self) -> dict[str, int | None]:
        """Each model of the server with its context in tokens, where it says so (vLLM does)."""
        try:
            response = await self._client.get("models")
            if not response.is_success:
                self._refused(response, None)
            entries = response.json()["data"]
            return {str(entry["id"]): _whole(entry.get("max_model_len")) for entry in entries}
        except _Passing as trouble:
            raise trouble.error from None
        except httpx.TransportError as error:
            raise self._no_server(error) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PolicyError(
                f"{self._url} does not say which models it has",
                self._clean(f"{type(error).__name__}: {error}"),
                "Add --model NAME, and check that the address is the one that ends in /v1.",
            ) from error

    def _refused(self, response: httpx.Response, model: str | None) -> None:
        """Raises what a status other than success means."""
        status, said = response.status_code, self._clean(_said(response))
        if status in (401, 403):
            how = f"Put the key into the environment: export {KEY}=..."
            if self._key:
                how = f"Check the key in the environment variable {KEY}."
            raise PolicyError(f"{self._url} does not let us in (status {status})", said, how)
        if status == 404:
            meaning = f"It knows neither this path nor, maybe, the model {model!r}." if model else "No such path."
            raise PolicyError(
                f"{self._url} answered: not found",
                f"{meaning} {said}".strip(),
                "Check --url (it ends in /v1) and --model.",
            )
        error = PolicyError(
            f"{self._url} refused the request (status {status})",
            said,
            "Wait a while, or ask less at once with --streams."
            if status in PASSING
            else "Check --model, and that the prompt fits the model's context.",
        )
        if status in PASSING:
            raise _Passing(error, retry_after(response.headers.get("retry-after", "")))
        raise error

    def _no_server(self, error: Exception) -> PolicyError:
        return PolicyError(
            f"No usable answer from {self._url}",
            self._clean(str(error) or type(error).__name__),
            "Check --url, and that the server is running.",
        )

    def _broke_off(self, why: str) -> PolicyError:
        return PolicyError(
            f"{self._url} broke off in the middle of an answer",
            self._clean(why),
            "Look at the server's log; a server that takes one request at a time needs --streams 1.",
        )

    def _clean(self, text: str) -> str:
        text = " ".join(text.split())[:500]
        return text.replace(self._key, "(key)") if self._key else text


class _Passing(Exception):
    """A refusal that may be gone the next time; `wait` is what the server asked for, in seconds."""

    def __init__(self, error: PolicyError, wait: float | None) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait = wait


def base_url(text: str) -> httpx.URL:
    """`localhost:8000` and `http://localhost:8000` mean `http://localhost:8000/v1`. Raises UsageError."""
    written = text if "://" in text else f"http://{text}"
    try:
        url = httpx.URL(written)
    except httpx.InvalidURL as error:
        raise UsageError("--url is no address", str(error), "For example: http://localhost:8000/v1") from error
    if url.userinfo or url.query or url.fragment:
        raise UsageError("--url holds more than an address", "", f"A key belongs into the environment: {KEY}.")
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError("--url is no address of a web server", "", "For example: http://localhost:8000/v1")
    path = url.path.rstrip("/").removesuffix("/chat/completions")
    return url.copy_with(path=path or "/v1")


def retry_after(text: str) -> float | None:
    """Seconds from now of a Retry-After header, in either of its forms."""
    with suppress(ValueError):
        return max(0.0, float(text))
    with suppress(ValueError, TypeError):
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    return None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _key(url: httpx.URL) -> str:
    key = os.environ.get(KEY, "")
    if not key and url.scheme == "https" and url.host == "api.openai.com":
        key = os.environ.get(OPENAI_KEY, "")
    return key.strip()


def _said(response: httpx.Response) -> str:
    try:
        return _message(response.json())
    except ValueError:
        return response.text


def _message(answer: Any) -> str:
    """The sentence in an error object, whose form differs between servers."""
    found = answer
    for name in ("error", "message", "detail"):
        if isinstance(found, dict) and found.get(name):
            found = found[name]
    return found if isinstance(found, str) else json.dumps(found)
