"""Building ahead: a candidate's compiler is at work while another candidate is judged.

A process of its own, behind every wall and without any GPU, imports the candidate and constructs it. What its compiler
made lies in the folder in which the candidate's runner then starts, so that the runner's own build finds it done. The
verdict rests on that runner alone, but for one thing: what a compiler refuses is refused.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import re
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cudal1_core.events import Event, StageStarted
from cudal1_core.referee.channel import CLAIM_LIMIT, ChannelClosedError
from cudal1_core.referee.processes import END_SECONDS, Line
from cudal1_core.referee.supervisor import COMMAND
from cudal1_core.referee.workers import Workers

CORES_A_BUILD = 3  # a compiler and its driver
PACK_SECONDS = 20.0  # longest wait for what was built to be packed
LOOK_SECONDS = 0.5
_COMPILES = re.compile(r"\b(load_inline|cpp_extension)\b")
_REFUSED = re.compile(r"Error building extension.*\berror:", re.DOTALL)
# what is no fault of the code: the machine's memory, and a GPU's own architecture asked for where there is none
_EXCUSED = re.compile(r"\bKilled\b|[Cc]annot allocate memory|virtual memory exhausted|No space left|\bnative\b")


@dataclass(frozen=True, slots=True)
class Built:
    """What building ahead came to."""

    folder: Path  # in which it was built: compilers write down where they were
    packed: Path
    refused: str = ""  # the compiler's words, where it refuses the code
    isolation: tuple[str, ...] = ()

    def spec(self) -> dict[str, Any]:
        """Fields of the Spec of a runner that goes on from here."""
        return {"folder": self.folder, "caches": str(self.packed)}


class Ahead:
    """Builds candidates of the open reference, a few side by side."""

    def __init__(self, workers: Workers, build_timeout_s: float) -> None:
        self._workers = workers
        self._timeout = build_timeout_s
        self._message = b""  # the trusted worker's to a runner that is to build; empty: nothing is built ahead
        self._environment: dict[str, str] = {}
        self._files: Mapping[str, bytes] = {}
        self._built: dict[str, Built] = {}  # by what _digest says of the source
        self._places = asyncio.Semaphore(1)
        self._beside = False  # there are cores that no timing needs
        self._gpu = False  # candidates are timed on one
        self._walled = True  # this system can keep a process from the GPU
        self._controls: set[socket.socket] = set()
        self._held = False

    def open(self, building: dict[str, Any], helpers: Mapping[str, bytes], device: str) -> None:
        """`building` is what the trusted worker tells of building a candidate of its reference."""
        self.forget()
        self._message = base64.b64decode(building["message"])
        self._files = helpers
        cores = self._workers.cores
        self._beside = bool(cores)
        self._places = asyncio.Semaphore(max(1, len(cores) // CORES_A_BUILD))
        self._environment = {"TORCH_CUDA_ARCH_LIST": building["architectures"]} if building["architectures"] else {}
        self._gpu = device != "cpu"

    def forget(self) -> None:
        for built in self._built.values():
            built.packed.unlink(missing_ok=True)
        self._message, self._built = b"", {}

    @property
    def environment(self) -> dict[str, str]:
        """What a runner needs, too, to find done what was built ahead: torch asks the GPUs in sight otherwise."""
        return self._environment

    def worth(self, source: str) -> bool:
        """Whether the source calls a compiler, and that can be had out of the GPU's sight."""
        return bool(self._message) and (self._walled or not self._gpu) and _COMPILES.search(source) is not None

    def take(self, text: bytes) -> Built | None:
        """What was built of this source, once."""
        return self._built.pop(_digest(text), None)

    def hold(self) -> None:
        """Something is timed, and there are no cores to spare: builds stop until `go_on`."""
        if not self._beside and not self._held:
            self._held = True
            self._command(b"S")

    def go_on(self) -> None:
        if self._held:
            self._held = False
            self._command(b"C")

    async def build(self, candidate_id: str, text: bytes, emit: Callable[[Event], None]) -> None:
        """Returns when the candidate is built, or will not be. Raises RefereeError where no process can be had."""
        async with self._places:
            emit(StageStarted(candidate=candidate_id, stage="building"))
            built = await self._build(candidate_id, text)
        if built is not None:
            self._built[_digest(text)] = built
        emit(StageStarted(candidate=candidate_id, stage="queued"))

    async def _build(self, candidate_id: str, text: bytes) -> Built | None:
        folder = self._workers.folder()
        packed = folder.with_suffix(".tar")
        built = None
        try:
            built = await self._packed(candidate_id, text, folder, packed)
        finally:
            if built is None or built.refused:
                packed.unlink(missing_ok=True)
        return built

    async def _packed(self, candidate_id: str, text: bytes, folder: Path, packed: Path) -> Built | None:
        process, channel, control = await self._workers.runner(
            candidate_id,
            walls="all",
            files={**self._files, "candidate.py": text},
            folder=folder,
            environment={**self._environment, "CUDA_VISIBLE_DEVICES": ""},
            gpu=False,
            pack=str(packed),
        )
        answer = None
        line = Line(channel)
        try:
            await line.connect()
            await process.told.wait()
            if self._gpu and not any(layer.startswith("landlock") for layer in process.isolation):
                self._walled = False
                return None
            with contextlib.suppress(EOFError, TimeoutError, ValueError, RecursionError, ChannelClosedError):
                line.send({"do": "build_ahead", "path": str(folder / "candidate.py"), "what": self._message})
                answer = await self._answer(line, control)
        finally:
            line.close()
            await self._workers.end(process, END_SECONDS if answer is None else PACK_SECONDS)
            control.close()
        return Built(folder, packed, _refusal(answer), process.isolation) if isinstance(answer, dict) else None

    async def _answer(self, line: Line, control: socket.socket) -> Any:
        """The runner's claim. Raises TimeoutError; time in which it was held does not count."""
        receiving = asyncio.create_task(line.receive(None, CLAIM_LIMIT))
        self._controls.add(control)
        if self._held:
            self._command(b"S", control)
        left = self._timeout
        try:
            while left > 0:
                begin, held = time.monotonic(), self._held
                if (await asyncio.wait([receiving], timeout=min(left, LOOK_SECONDS)))[0]:
                    return receiving.result()
                left -= 0.0 if held else time.monotonic() - begin
            raise TimeoutError
        finally:
            self._controls.discard(control)
            receiving.cancel()
            await asyncio.wait([receiving])

    def _command(self, what: bytes, *controls: socket.socket) -> None:
        """Its answers are left where they are: nothing is timed by them."""
        for control in controls or tuple(self._controls):
            with contextlib.suppress(OSError):
                control.sendall(COMMAND.pack(what, 0))


def _refusal(answer: dict[str, Any]) -> str:
    """The reason of a rejection, where a compiler has found a fault in the code; what else failed may be for want of a
    GPU."""
    if answer.get("failed") != "build_failed":
        return ""
    words = str(answer.get("line") or answer.get("error"))
    whole = f"{answer.get('error')}\n{answer.get('traceback')}"
    return words[:2000] if _REFUSED.search(whole) and not _EXCUSED.search(whole) else ""


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
