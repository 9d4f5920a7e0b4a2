"""A server that speaks OpenAI's chat completions: its models, its answers, its refusals.

Every answer is one streamed request, so that servers which know no `n` serve as well, and leaving a stream is what
cancels it. The key comes from the environment, goes into one header, and is taken out of everything told.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
from httpx_sse import SSEError, aconnect_sse

from cudal1_core.errors import PolicyError, UsageError

KEY = "CUDAL1_API_KEY"
OPENAI_KEY = "OPENAI_API_KEY"  # sent to OpenAI alone, never to an address that merely speaks its language
TRIES = 5  # of one request, until its first token
LONGEST_WAIT_S = 60.0  # a server that wants more is not waited for
CONNECT_S = 10.0
SILENCE_S = 300.0  # between two pieces; reading a long prompt on a slow machine takes minutes
LOOPBACK = ("localhost", "127.0.0.1", "::1")
PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})  # statuses worth another try
# Where a list of models says how long a context is: vLLM, OpenRouter, LM Studio (loaded, then possible), llama.cpp.
_CONTEXT_KEYS = ("max_model_len", "context_length", "loaded_context_length", "max_context_length", "n_ctx")
_CONTEXT = re.compile(r"context\D{0,40}?(\d{3,})", re.IGNORECASE)


class BrokenOffError(PolicyError):
    """The server went away in the middle of an answer."""


class TooLongError(PolicyError):
    """The request does not fit the model's context of `context` tokens."""

    def __init__(self, title: str, meaning: str, next_step: str, context: int) -> None:
        super().__init__(title, meaning, next_step)
        self.context = context


class ChatServer:
    """One address and one of its models, which may be left out where the server has only one."""

    def __init__(
        self,
        url: str,
        model: str | None,
        *,
        key: str = KEY,  # name of the environment variable
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.url = base_url(url)
        self.context: int | None = None  # tokens; None where the server has not said
        self._model = model
        self._looked = False  # whether the server was asked for its models
        self._pause = pause
        self._key_name = key
        self._key = _key(self.url, key)
        self._client = httpx.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            timeout=httpx.Timeout(SILENCE_S, connect=CONNECT_S),
            limits=httpx.Limits(max_connections=None),
            trust_env=self.url.host not in LOOPBACK,  # no proxy stands between this machine and itself
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def answer(self, body: dict[str, Any], *, patient: bool = False) -> AsyncIterator[str]:
        """Pieces of one answer to `body`, a request without model and stream.

        Tried again until the first piece has come, never after it; a `patient` one also where nobody listens, since a
        server that was there may come back. Raises PolicyError.
        """
        asked = {"model": await self.model(), "stream": True, **body}
        for attempt in range(1, TRIES + 1):
            begun = False
            try:
                async for piece in self._stream(asked):
                    begun = True
                    yield piece
                return
            except _PassingError as trouble:
                if attempt == TRIES:
                    raise trouble.error from None
                wait = trouble.wait if trouble.wait is not None else _growing(attempt)
                if wait > LONGEST_WAIT_S:
                    raise trouble.error from None
                await self._pause(wait)
            except (httpx.TransportError, SSEError, json.JSONDecodeError) as error:
                if begun:
                    raise self._broke_off(str(error) or type(error).__name__) from error
                useless = isinstance(error, httpx.UnsupportedProtocol | SSEError)
                if attempt == TRIES or useless or (isinstance(error, httpx.ConnectError) and not patient):
                    raise self._no_server(error) from error
                await self._pause(_growing(attempt))

    async def fits(self, body: dict[str, Any]) -> bool:
        """Has the server read the request and write one token; False where it says that its context is too short.

        Any other trouble passes for fitting: it will be told when an answer is asked for.
        """
        try:
            async for _ in self.answer({**body, "max_tokens": 1}):
                break
        except TooLongError:
            return False
        except PolicyError:
            pass
        return True

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

    async def model(self) -> str:
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
                raise PolicyError(f"Which model of {self.url}?", f"It has: {names}.", "Add --model NAME.")
            (self._model,) = listed
        self.context = listed.get(self._model)
        return self._model

    async def _list(self) -> dict[str, int | None]:
        """Each model of the server with its context in tokens, where it says so."""
        try:
            response = await self._client.get("models")
            if not response.is_success:
                self._refused(response, None)
            entries = response.json()["data"]
            return {str(entry["id"]): _context_of(entry) for entry in entries}
        except _PassingError as trouble:
            raise trouble.error from None
        except httpx.TransportError as error:
            raise self._no_server(error) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PolicyError(
                f"{self.url} does not say which models it has",
                self._clean(f"{type(error).__name__}: {error}"),
                "Add --model NAME, and check that the address is the one that ends in /v1.",
            ) from error

    def _refused(self, response: httpx.Response, model: str | None) -> None:
        """Raises what a status other than success means."""
        status, said = response.status_code, self._clean(_said(response))
        if status in (401, 403):
            how = f"Put the key into the environment: export {self._key_name}=..."
            if self._key:
                how = f"Check the key in the environment variable {self._key_name}."
            raise PolicyError(f"{self.url} does not let us in (status {status})", said, how)
        if status == 404:
            meaning = f"It knows neither this path nor, maybe, the model {model!r}." if model else "No such path."
            raise PolicyError(
                f"{self.url} answered: not found",
                f"{meaning} {said}".strip(),
                "Check --url (it ends in /v1) and --model.",
            )
        if (context := context_in(said)) is not None:
            self.context = context
            raise TooLongError(
                f"The prompt is too long for {self.url}",
                said,
                "Take a model with a longer context, start the server with more, or shorten the reference.",
                context,
            )
        error = PolicyError(
            f"{self.url} refused the request (status {status})",
            said,
            "Wait a while, or ask less at once with --streams."
            if status in PASSING
            else "Check --model, and that the prompt fits the model's context.",
        )
        if status in PASSING:
            raise _PassingError(error, retry_after(response.headers.get("retry-after", "")))
        raise error

    def _no_server(self, error: Exception) -> PolicyError:
        return PolicyError(
            f"No usable answer from {self.url}",
            self._clean(str(error) or type(error).__name__),
            "Check --url, and that the server is running.",
        )

    def _broke_off(self, why: str) -> BrokenOffError:
        return BrokenOffError(
            f"{self.url} broke off in the middle of an answer",
            self._clean(why),
            "Look at the server's log; a server that takes one request at a time needs --streams 1.",
        )

    def _clean(self, text: str) -> str:
        text = " ".join(text.split())[:500]
        return text.replace(self._key, "(key)") if self._key else text


class _PassingError(Exception):
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


def context_in(said: str) -> int | None:
    """Tokens of the context that a refusal complains of; None where it complains of something else."""
    match = _CONTEXT.search(said)
    return int(match[1]) if match else None


def _context_of(entry: dict[str, Any]) -> int | None:
    """By an entry of the list of models; llama.cpp nests its own below `meta`."""
    meta = entry.get("meta")
    for facts in (entry, meta if isinstance(meta, dict) else {}):
        for key in _CONTEXT_KEYS:
            if isinstance(facts.get(key), int) and facts[key] > 0:
                return int(facts[key])
    return None


def _growing(attempt: int) -> float:
    return random.uniform(0.5, 1.0) * 2.0 ** (attempt - 1)


def _key(url: httpx.URL, name: str) -> str:
    key = os.environ.get(name, "")
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
