"""A server of sockets that speaks chat completions as its tests tell it to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

Answer = Callable[[dict[str, Any], asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Server:
    """Answers each request by the next of `answers`; the last one stays."""

    answers: list[Answer]
    models: Answer = field(default_factory=lambda: NO_LIST)
    requests: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:] if line)}
            raw = await reader.readexactly(int(headers.get("content-length", 0)))
            body = json.loads(raw) if raw else {}
            if head[0].startswith("GET"):
                await self.models(body, writer)
                return
            self.requests.append((head[0].rsplit(" ", 1)[0], headers, body))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            await answer(body, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def status(code: int, body: str = "", **headers: str) -> Answer:
    async def answer(asked: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {code} X\r\nConnection: close\r\n{lines}\r\n{body}".encode())
        await writer.drain()

    return answer


def chunk(text: str | None, finish: str | None = None) -> str:
    delta = {"content": text} if text is not None else {"role": "assistant"}
    return "data: " + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}) + "\n\n"


def stream(*lines: str) -> Answer:
    return status(200, "".join(lines), content_type="text/event-stream")


def whole(text: str) -> Answer:
    """One answer, streamed in two pieces."""
    half = len(text) // 2
    return stream(chunk(text[:half]), chunk(text[half:]), chunk("", "stop"), "data: [DONE]\n\n")


NO_LIST = status(404)
