"""A server that speaks as vLLM does is started, watched, fed adapters, and ended with all that it started."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from cudal1_core.errors import PolicyError
from cudal1_core.policies.base import Prompt
from cudal1_core.policies.vllm import VllmPolicy
from cudal1_core.policies.weights import Weights

from tests.unit.scripted import make_task

SERVER = """
import http.server, json, subprocess, sys
word = dict(zip(sys.argv[1::1], sys.argv[2::1]))
if word["--model"] == "none":
    sys.exit("no such model: none")
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
adapters = {}
class Handler(http.server.BaseHTTPRequestHandler):
    def say(self, status, body):
        self.send_response(status)
        self.send_header("content-type", "text/event-stream" if "data:" in body else "application/json")
        self.end_headers()
        self.wfile.write(body.encode())
    def do_GET(self):
        self.say(200, json.dumps({"data": [{"id": "cudal1", "max_model_len": 4096}]}))
    def do_POST(self):
        said = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "unload" in self.path:
            adapters.pop(said["lora_name"])
            return self.say(200, "{}")
        if "load" in self.path:
            if "--enable-lora" not in sys.argv or "bad" in said["lora_path"]:
                return self.say(400, "rank too high")
            adapters[said["lora_name"]] = said["lora_path"]
            return self.say(200, "{}")
        if said["messages"][0]["content"] == "die":
            import os; os._exit(1)
        text = f"{said['model']} {sorted(adapters)}"
        chunk = {"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]}
        self.say(200, "data: " + json.dumps(chunk) + "\\n\\ndata: [DONE]\\n\\n")
http.server.ThreadingHTTPServer(("127.0.0.1", int(word["--port"])), Handler).serve_forever()
"""


@asynccontextmanager
async def policy(tmp_path: Path, model: str = "tiny", **more: object) -> AsyncIterator[VllmPolicy]:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    weights = Weights(model, **more)  # type: ignore[arg-type]
    opened = VllmPolicy(weights, log=tmp_path / "vllm.log", command=[sys.executable, str(script)])
    try:
        yield opened
    finally:
        await opened.close()


async def told(opened: VllmPolicy, text: str = "write") -> str:
    prompt = Prompt(task=make_task(), round=1, text=text, exemplars=(), history=(), seed=0)
    return "".join([fragment.text async for fragment in opened.generate(prompt, 1)])


def test_it_is_started_once_and_ended_with_all_that_it_started(tmp_path: Path) -> None:
    async def play() -> list[psutil.Process]:
        async with policy(tmp_path) as opened:
            assert await told(opened) == await told(opened) == "cudal1 []"
            (mine,) = [one for one in psutil.Process().children() if "guard" in " ".join(one.cmdline())]
            return [mine, *mine.children(recursive=True)]

    family = asyncio.run(play())
    assert len(family) == 3
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []


def test_adapters_are_loaded_while_it_runs(tmp_path: Path) -> None:
    async def play() -> None:
        async with policy(tmp_path, adapter=tmp_path / "first") as opened:
            assert await told(opened) == "adapter-1 ['adapter-1']"
            await opened.adapt(tmp_path / "second")
            assert await told(opened) == "adapter-2 ['adapter-1', 'adapter-2']"
            await opened.adapt(tmp_path / "third")
            assert await told(opened) == "adapter-3 ['adapter-2', 'adapter-3']"
            with pytest.raises(PolicyError, match="does not take the adapter"):
                await opened.adapt(tmp_path / "bad")
            assert (await told(opened)).startswith("adapter-3")

    asyncio.run(play())


def test_a_start_that_fails_and_a_server_that_dies_say_its_last_words(tmp_path: Path) -> None:
    async def play() -> None:
        async with policy(tmp_path, "none") as opened:
            with pytest.raises(PolicyError) as failed:
                await opened.prepare()
            assert "no such model: none" in failed.value.meaning
        async with policy(tmp_path) as opened:
            with pytest.raises(PolicyError):
                await told(opened, "die")
            assert await told(opened) == "cudal1 []"  # started anew

    asyncio.run(play())


def test_it_ends_when_the_program_that_started_it_is_killed(tmp_path: Path) -> None:
    async def play() -> list[psutil.Process]:
        program = f"""
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from cudal1_core.policies.vllm import VllmPolicy
from cudal1_core.policies.weights import Weights
async def main():
    policy = VllmPolicy(Weights("tiny"), command=[sys.executable, {str(tmp_path / "server.py")!r}])
    await policy.prepare()
    print("ready", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
        (tmp_path / "server.py").write_text(SERVER)
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE, start_new_session=True
        )
        assert child.stdout is not None
        assert await child.stdout.readline() == b"ready\n"
        family = psutil.Process(child.pid).children(recursive=True)
        child.kill()
        await child.wait()
        return family

    family = asyncio.run(play())
    assert len(family) == 3
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []
