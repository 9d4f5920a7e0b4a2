"""The openai policy against a server of sockets: streams, refusals, and ends that come too early."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from cudal1_core.errors import PolicyError, UsageError
from cudal1_core.policies import make_policy
from cudal1_core.policies.base import Fragment, Prompt, Turn
from cudal1_core.policies.chat import TRIES, base_url, context_in, retry_after
from cudal1_core.policies.openai import OpenAIPolicy

from tests.policies.chat_server import Answer, Server, chunk, status, stream
from tests.unit.scripted import make_task

ASKED = Prompt(task=make_task(), round=1, text="make it fast", exemplars=(), history=(), seed=5)


GOOD = stream(": hi\n\n", chunk(None), chunk("class "), chunk("ModelNew: é"), chunk("", "stop"), "data: [DONE]\n\n")
MODELS = status(200, json.dumps({"data": [{"id": "only"}]}), content_type="application/json")


async def ask(
    server: Server, n: int = 1, model: str | None = "m", asked: Prompt = ASKED, **options: Any
) -> tuple[list[Fragment], list[float]]:
    waited: list[float] = []

    async def pause(seconds: float) -> None:
        waited.append(seconds)

    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    policy = OpenAIPolicy(f"127.0.0.1:{port}", model, pause=pause, **options)
    try:
        return [fragment async for fragment in policy.generate(asked, n)], waited
    finally:
        await policy.close()
        listening.close()


def run(server: Server, **options: Any) -> tuple[list[Fragment], list[float]]:
    return asyncio.run(ask(server, **options))


def refused(server: Server, **options: Any) -> str:
    with pytest.raises(PolicyError) as caught:
        run(server, **options)
    return str(caught.value)


def test_pieces_come_as_the_server_sends_them_and_each_candidate_ends() -> None:
    server = Server([GOOD])
    fragments, waited = run(server, n=3)
    for index in range(3):
        mine = [one for one in fragments if one.index == index]
        assert [one.text for one in mine] == ["class ", "ModelNew: é", ""]
        assert [one.done for one in mine] == [False, False, True]
    assert waited == []
    bodies = [body for _, _, body in server.requests]
    assert sorted(body["seed"] for body in bodies) == [5, 6, 7]
    assert {body["messages"][0]["content"] for body in bodies} == {"make it fast"}


def test_one_stream_can_be_dropped_and_its_connection_is_closed() -> None:
    closed = []

    async def endless(asked: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\n\r\n")
        try:
            while True:
                writer.write(chunk("x").encode())
                await writer.drain()
                await asyncio.sleep(0.005)
                if asked["seed"] == ASKED.seed and len(closed) == 1:
                    writer.write(b"data: [DONE]\n\n")
                    return
        except ConnectionError:
            closed.append(asked["seed"])
            raise

    async def play() -> list[Fragment]:
        listening = await asyncio.start_server(Server([endless]).serve, "127.0.0.1", 0)
        policy = OpenAIPolicy(f"127.0.0.1:{listening.sockets[0].getsockname()[1]}", "m")
        told = []
        async for one in policy.generate(ASKED, 2):
            told.append(one)
            if len(told) == 4:
                await policy.drop(ASKED, 1)
        await policy.close()
        listening.close()
        return told

    told = asyncio.run(play())
    assert closed == [ASKED.seed + 1]
    assert sorted(one.index for one in told if one.done) == [0, 1]
    assert all(one.trouble is None for one in told)


def test_the_only_model_of_a_server_needs_no_name() -> None:
    server = Server([GOOD], MODELS)
    run(server, model=None)
    assert [line for line, _, _ in server.requests] == ["POST /v1/chat/completions"]
    assert server.requests[0][2]["model"] == "only"


def test_a_repair_goes_back_as_a_conversation() -> None:
    server = Server([GOOD])
    run(server, asked=replace(ASKED, turns=(Turn("my answer", "it does not build"),)))
    told = [(message["role"], message["content"]) for message in server.requests[0][2]["messages"]]
    assert told == [("user", "make it fast"), ("assistant", "my answer"), ("user", "it does not build")]


def test_several_models_are_listed() -> None:
    several = status(200, json.dumps({"data": [{"id": "one"}, {"id": "two"}]}))
    assert "one, two" in refused(Server([GOOD], several), model=None)


def test_a_busy_server_is_waited_for_as_long_as_it_says() -> None:
    server = Server([status(429, retry_after="7"), status(503), GOOD])
    fragments, waited = run(server)
    assert fragments[-1].done
    assert waited[0] == 7.0
    assert 0 < waited[1] <= 2.0
    assert len(server.requests) == 3


def test_a_server_that_stays_busy_is_given_up_with_its_words() -> None:
    server = Server([status(429, json.dumps({"error": {"message": "quota spent"}}))])
    assert "quota spent" in refused(server)
    assert len(server.requests) == TRIES


def test_a_wait_of_hours_is_not_waited() -> None:
    server = Server([status(429, retry_after="7200")])
    assert "status 429" in refused(server)
    assert len(server.requests) == 1


def test_the_key_comes_from_the_environment_and_is_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDAL1_API_KEY", "sk-secret")
    server = Server([status(401, json.dumps({"error": {"message": "bad key sk-secret"}}))])
    told = refused(server)
    assert server.requests[0][1]["authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in told
    assert "CUDAL1_API_KEY" in told
    assert len(server.requests) == 1


def test_openais_key_goes_to_openai_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDAL1_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    server = Server([GOOD])
    run(server)
    assert "authorization" not in server.requests[0][1]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (status(404, json.dumps({"error": {"message": "model m does not exist"}})), "model m does not exist"),
        (status(400, json.dumps({"detail": "context length exceeded"})), "context length exceeded"),
        (status(200, "<html>", content_type="text/html"), "No usable answer"),
    ],
)
def test_what_cannot_be_used_is_said_at_once(answer: Answer, words: str) -> None:
    server = Server([answer])
    assert words in refused(server)
    assert len(server.requests) == 1


async def die(asked: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99999\r\n\r\n")
    writer.write(chunk("half").encode())
    await writer.drain()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (stream(chunk("half")), "before the answer was complete"),
        (stream(chunk("half"), 'data: {"error": {"message": "engine died"}}\n\n'), "engine died"),
        (stream(chunk("half"), "data: {no json\n\n"), "Expecting"),
        (die, "peer closed connection"),
    ],
)
def test_a_stream_that_breaks_off_costs_its_candidate_and_another_is_asked_for(answer: Answer, words: str) -> None:
    server = Server([answer, GOOD])
    fragments, _ = run(server)
    broken = [one for one in fragments if one.index == 0]
    assert [one.text for one in broken] == ["half", ""]
    assert broken[-1].done
    assert broken[-1].trouble is not None
    assert "broke off in the middle" in broken[-1].trouble.title
    assert words in broken[-1].trouble.meaning
    second = [one for one in fragments if one.index == 1]
    assert "".join(one.text for one in second) == "class ModelNew: é"
    assert second[-1].done
    assert second[-1].trouble is None
    assert len(server.requests) == 2


def test_a_server_that_dies_for_good_leaves_what_the_others_wrote() -> None:
    fragments, _ = run(Server([GOOD, die]), n=2, streams=1)
    whole = [one for one in fragments if one.done and one.trouble is None]
    assert [one.index for one in whole] == [0]
    assert {one.index for one in fragments if one.trouble is not None} == {1, 3}  # and its second try


def test_a_stream_that_ends_before_its_first_word_is_no_candidate() -> None:
    fragments, _ = run(Server([stream(), GOOD]))
    assert [one.index for one in fragments if one.text] == [1, 1]
    assert [one.index for one in fragments if one.trouble is not None] == [0]
    assert "before the answer was complete" in refused(Server([stream()]))


def test_a_server_that_is_gone_after_a_break_is_waited_for() -> None:
    async def come_back() -> list[Fragment]:
        server = Server([die, GOOD])
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        pauses = 0

        async def pause(seconds: float) -> None:
            nonlocal pauses, listening
            pauses += 1
            if pauses == 2:
                listening = await asyncio.start_server(server.serve, "127.0.0.1", port)

        policy = OpenAIPolicy(f"127.0.0.1:{port}", "m", pause=pause)
        policy._server._looked = True
        fragments = []
        async for fragment in policy.generate(ASKED, 1):
            fragments.append(fragment)
            if fragment.text == "half":
                listening.close()
                await listening.wait_closed()
        await policy.close()
        listening.close()
        assert pauses == 2
        return fragments

    fragments = asyncio.run(asyncio.wait_for(come_back(), 60))
    assert "".join(one.text for one in fragments if one.index == 1) == "class ModelNew: é"


def test_no_server_there() -> None:
    async def nobody() -> None:
        listening = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        listening.close()
        await listening.wait_closed()
        policy = OpenAIPolicy(f"http://127.0.0.1:{port}/v1", "m")
        with pytest.raises(PolicyError, match="No usable answer"):
            [_ async for _ in policy.generate(ASKED, 1)]
        await policy.close()

    asyncio.run(nobody())


def test_leaving_the_group_leaves_every_stream_on_the_server() -> None:
    left = [asyncio.Event(), asyncio.Event()]
    waiting = list(left)

    async def leave() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + chunk("on and on").encode())
            while await reader.read(4096):  # the request's body, then nothing until the client has gone
                pass
            waiting.pop().set()
            writer.close()

        listening = await asyncio.start_server(serve, "127.0.0.1", 0)
        policy = OpenAIPolicy(f"127.0.0.1:{listening.sockets[0].getsockname()[1]}", "m")
        policy._server._looked = True
        group = policy.generate(ASKED, 2)
        seen = {(await anext(group)).index, (await anext(group)).index}
        assert seen == {0, 1}
        await group.aclose()  # type: ignore[attr-defined]
        for one in left:
            await one.wait()
        await policy.close()
        listening.close()

    asyncio.run(asyncio.wait_for(leave(), 60))


def fit(server: Server, *texts: str) -> list[int]:
    """The choice among the texts, made twice by the same policy."""

    async def choose() -> list[int]:
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        policy = OpenAIPolicy(f"127.0.0.1:{listening.sockets[0].getsockname()[1]}", "m")
        try:
            return [await policy.fit(texts), await policy.fit(texts)]
        finally:
            await policy.close()
            listening.close()

    return asyncio.run(choose())


TEXTS = ("x" * 3000, "x" * 600, "x" * 60)


@pytest.mark.parametrize(("context", "index"), [(100_000, 0), (400, 1), (10, 2)])
@pytest.mark.parametrize("key", ["max_model_len", "context_length", "n_ctx"])
def test_the_first_prompt_that_fits_the_servers_context_is_taken(key: str, context: int, index: int) -> None:
    entry = {"id": "m", "meta": {key: context}} if key == "n_ctx" else {"id": "m", key: context}
    server = Server([GOOD], status(200, json.dumps({"data": [entry]})))
    assert fit(server, *TEXTS) == [index, index]
    assert server.requests == []


REFUSALS = [
    "This model's maximum context length is 400 tokens. However, you requested 1100 tokens (1000 in the messages).",
    "the request exceeds the available context size (400 tokens), try increasing it",
    "Requested tokens (1000) exceed context window of 400",
]


@pytest.mark.parametrize("words", REFUSALS)
def test_a_server_that_lists_no_context_is_asked_and_names_it_in_its_refusal(words: str) -> None:
    server = Server([status(400, json.dumps({"error": {"message": words}}))])
    assert fit(server, *TEXTS) == [1, 1]
    assert len(server.requests) == 1  # it is known from then on
    assert server.requests[0][2]["max_tokens"] == 1


def test_a_server_that_takes_the_longest_prompt_is_asked_once() -> None:
    server = Server([GOOD])
    assert fit(server, *TEXTS) == [0, 0]
    assert len(server.requests) == 1


def test_another_refusal_says_nothing_of_a_context() -> None:
    assert context_in("model m does not exist") is None
    assert context_in("no context given in 3 s") is None
    assert fit(Server([status(400, json.dumps({"error": {"message": "bad request"}}))]), *TEXTS) == [0, 0]


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("localhost:8000", "http://localhost:8000/v1"),
        ("http://localhost:8000/", "http://localhost:8000/v1"),
        ("https://host/api/v1/", "https://host/api/v1"),
        ("http://host/v1/chat/completions", "http://host/v1"),
    ],
)
def test_addresses(text: str, url: str) -> None:
    assert str(base_url(text)) == url


@pytest.mark.parametrize("text", ["", "ftp://host", "http://", "http://me:secret@host/v1", "http://host/v1?key=x"])
def test_what_is_no_address_is_wrong_usage_and_not_repeated(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        base_url(text)
    assert "secret" not in str(caught.value)


def test_the_policy_needs_an_address() -> None:
    with pytest.raises(UsageError, match="address of a server"):
        make_policy("openai")


def test_retry_after_in_both_forms() -> None:
    assert retry_after("3.5") == 3.5
    assert retry_after("soon") is None
    ahead = retry_after(format_datetime(datetime.now(UTC) + timedelta(hours=1)))
    assert ahead is not None
    assert 3000 < ahead <= 3600
