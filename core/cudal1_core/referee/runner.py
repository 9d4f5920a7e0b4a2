"""The trusted side's grip on one runner: its messages, its freezing, and the clock around its calls."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from cudal1_core.referee import arena as arenas
from cudal1_core.referee.arena import Arena
from cudal1_core.referee.channel import Channel, ChannelClosedError, ChannelTimeoutError, ClaimError
from cudal1_core.referee.layout import Leaf, Slots, Tree, lay_out
from cudal1_core.referee.naming import Names, table_bytes
from cudal1_core.referee.quiet import Canary
from cudal1_core.referee.staging import Stage
from cudal1_core.referee.supervisor import COMMAND
from cudal1_core.verdict import REJECTED_CATEGORIES

SAMPLE = 32  # words of each output that is copied, read before the clock stops
PEEKS = 4  # elements of an output, of calls released by themselves
GRACE_SECONDS = 10.0  # added to a limit for what is not the candidate's own work


class FaultError(Exception):
    """A runner failed to do what was asked; `category` is one of verdict.REJECTED_CATEGORIES."""

    def __init__(self, category: str, reason: str) -> None:
        super().__init__(reason)
        self.category = category
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Sample:
    """What lay at secret places of the outputs (in words of 4 bytes) when the clock stopped."""

    places: torch.Tensor
    words: torch.Tensor


@dataclass(frozen=True, slots=True)
class Block:
    """One block of calls: seconds until all were said to be done, and until every output was in our hands.

    Where outputs are named rather than copied both are the time until the runner had stopped.
    """

    calls: int
    called: float
    delivered: float
    forms: list[Any]
    sampled: Sample | None = None  # of outputs that were copied


class Runner:
    """Frozen whenever it is not its turn: it sees no input before the clock runs, and works in no gap."""

    def __init__(self, channel: Channel, control: socket.socket, canary: Canary, call_timeout: float) -> None:
        self.channel = channel
        self.control = control
        self.canary = canary
        self.device = canary.device
        self.call_timeout = call_timeout
        self.inputs: Slots = lay_out((), 0)
        self.outputs: Slots = lay_out((), 0)
        self.state: Slots = lay_out((), 0)
        self.state_names: list[str] = []
        self.arenas: list[Arena] = []  # inputs, outputs, state
        self.memory: int | None = None  # of the runner's process, for reading; None where outputs are copied
        self.names: Names | None = None
        self.amid = False  # a message of ours is not answered yet, or was answered with a fault
        self.source = secrets.SystemRandom()
        self.random = torch.Generator()
        self.random.manual_seed(secrets.randbits(62))

    def open_memory(self) -> None:
        """Takes hold of the memory of the runner's process, where the system lets its supervisor look into it."""
        try:
            self.control.settimeout(GRACE_SECONDS)
            self.control.sendall(COMMAND.pack(b"M", 0))
            _, fds, _, _ = socket.recv_fds(self.control, 1, 1)
        except OSError as error:
            raise FaultError("crashed", f"the process ended ({error})") from error
        self.memory = fds[0] if fds else None

    def freeze(self) -> None:
        try:
            self.control.settimeout(GRACE_SECONDS)
            self.control.sendall(COMMAND.pack(b"S", 0))
            answer = self.control.recv(1)
            if not answer:
                raise FaultError("crashed", "the process ended")
            if answer == b"r":
                raise FaultError("dishonest", "its processes went on computing when they had been stopped")
        except OSError as error:
            raise FaultError("crashed", f"the process ended ({error})") from error

    def waited(self) -> float:
        """Seconds so far in which threads of the runner were ready to run and other work had the core."""
        return self._counted(b"W")

    def computed(self) -> float:
        """Seconds of processor time that its living processes have had."""
        return self._counted(b"U")

    def _counted(self, what: bytes) -> float:
        """Seconds that the supervisor has counted."""
        try:
            self.control.settimeout(GRACE_SECONDS)
            self.control.sendall(COMMAND.pack(what, 0))
            answer = self.control.recv(COMMAND.size, socket.MSG_WAITALL)
        except OSError as error:
            raise FaultError("crashed", f"the process ended ({error})") from error
        if len(answer) < COMMAND.size:
            raise FaultError("crashed", "the process ended")
        return int(COMMAND.unpack(answer)[1]) / 1e9

    def thaw(self) -> None:
        try:
            self.control.sendall(COMMAND.pack(b"C", 0))
        except OSError as error:
            raise FaultError("crashed", f"the process ended ({error})") from error

    def pin(self, core: int | None) -> None:
        """Keeps the thread that launches on one core, or lets it go where it may."""
        try:
            self.control.sendall(COMMAND.pack(b"P", 0 if core is None else core + 1))
        except OSError as error:
            raise FaultError("crashed", f"the process ended ({error})") from error

    def ask(self, message: dict[str, Any], timeout: float, fds: list[int] | None = None) -> dict[str, Any]:
        """One message and its answer, in a turn of its own. Raises FaultError."""
        self.amid = True
        self.thaw()
        self._send(message, fds)
        answer = self._claim(timeout, str(message["do"]))
        self.freeze()
        self.amid = False
        return answer

    def build(self, timeout: float, **what: Any) -> list[tuple[str, str, tuple[int, ...]]]:
        """State of the built module: name, dtype, shape."""
        if self.device == "cpu":
            self.open_memory()
        answer = self.ask({"do": "build", **what}, timeout)
        try:
            return [(str(name), str(dtype), tuple(map(int, shape))) for name, dtype, shape in answer["built"]]
        except (KeyError, TypeError, ValueError) as error:
            raise FaultError("dishonest", "the answer to building has no proper form") from error

    def attach(
        self, tree: Tree, outputs: tuple[Leaf, ...], state: dict[str, Leaf], count: int, *, spoil: bool = False
    ) -> None:
        """Fresh arenas for `count` sets of inputs and outputs and one state. `spoil`: unwritten memory is not zero."""
        self.detach()
        self.inputs = lay_out(tree.tensors, count)
        self.outputs = lay_out(outputs, count)
        self.state = lay_out(tuple(state.values()), 1)
        self.state_names = list(state)
        made = [arenas.create(self.device, max(slots.nbytes, 1)) for slots in (self.inputs, self.state)]
        if self.memory is None:
            shared = held = arenas.create(self.device, max(self.outputs.nbytes, 1))
        else:
            shared = arenas.create(self.device, max(table_bytes(self.outputs), 1))
            self.names = Names.over(self.outputs, shared)
            held = arenas.alone(self.device, max(self.outputs.nbytes, 1))
        self.arenas = [made[0], held, made[1]]
        sent = [made[0], shared, made[1]]
        self.control.sendall(COMMAND.pack(b"A", sum(a.nbytes for a in sent) if self.device == "cpu" else 0))
        self.ask(
            {
                "do": "attach",
                "inputs": self.inputs,
                "tree": tree,
                "outputs": self.outputs,
                "state": self.state,
                "state_names": self.state_names,
                "sizes": [a.nbytes for a in sent],
                "named": self.names is not None,
                "spoil": spoil,
            },
            GRACE_SECONDS * 3,
            [a.fd for a in sent],
        )
        if shared is not held:
            shared.close()

    def end(self) -> None:
        """Its supervisor ends every process of it, and with them their work on the device."""
        self.control.close()

    def detach(self) -> None:
        for arena in self.arenas:
            arena.close()
        self.arenas, self.names = [], None

    def close(self) -> None:
        """Lets go of the runner and of all that was shared with it."""
        self.detach()
        if self.memory is not None:
            os.close(self.memory)
            self.memory = None
        self.channel.close()
        self.control.close()

    def input_spans(self, slot: int) -> list[torch.Tensor]:
        return self.inputs.spans(self.arenas[0], slot)

    def output_views(self, slot: int) -> list[torch.Tensor]:
        return self.outputs.views(self.arenas[1], slot)

    def state_views(self) -> dict[str, torch.Tensor]:
        return dict(zip(self.state_names, self.state.views(self.arenas[2], 0), strict=True))

    def load_state(self, state: dict[str, torch.Tensor]) -> None:
        for name, view in self.state_views().items():
            view.copy_(state[name])
        self._synchronize()
        self.ask({"do": "load_state"}, self.call_timeout + GRACE_SECONDS)

    def save_state(self) -> dict[str, torch.Tensor]:
        self.ask({"do": "save_state"}, self.call_timeout + GRACE_SECONDS)
        return {name: view.clone() for name, view in self.state_views().items()}

    def run(
        self,
        slots: Sequence[int],
        stage: Stage,
        *,
        one_by_one: bool,
        seeds: list[int] | None = None,
        scalars: dict[int, list[Any]] | None = None,
        timeout: float | None = None,
        busy: float = 0.0,
        **options: bool,
    ) -> list[Block]:
        """Calls on the given slots with the inputs of `stage`. One block for all slots, or one a slot.

        On CUDA the device can be kept `busy` for so many seconds from the start of the clock, by the trusted side's
        own kernel: what the runner's processor does meanwhile to launch its work is then hidden.

        The clock starts before the runner can see any input: on the CPU they are laid into the arena while it is
        frozen, on CUDA after the start of the clock, since what a candidate has queued on the device cannot be
        frozen. It stops when the runner has been stopped and the outputs it has named can be read from its memory.
        Copied ones: once a secret sample of them has been read; `confirm` holds the sample against what lies there
        later, so that saying "done" early gains nothing. Raises FaultError, and DeviceBusyError where anybody's work
        still runs on the device as the clock would start.
        """
        limit = timeout or self.call_timeout
        self.amid = True
        self.thaw()
        self._send({"do": "run", "slots": list(slots), "one_by_one": one_by_one, **options})
        self._claim(limit + GRACE_SECONDS, "run")
        blocks = []
        self.freeze()
        for steps in [[slot] for slot in slots] if one_by_one else [list(slots)]:
            places = None if self.names else self._secret_places(steps)
            begin, end = stage.part(steps)
            fresh, place = stage.arena.data[begin:end], self.arenas[0].data[begin:end]
            if self.device == "cpu":
                place.copy_(fresh)
            else:
                self._poison(steps)
                self.canary.check()
            start = time.perf_counter_ns()
            if self.device != "cpu":
                place.copy_(fresh)
                self._synchronize()
                if busy:
                    self.canary.occupy(busy)
            self.thaw()
            self._send((scalars, seeds))  # both are inputs, so they too come only as the clock runs
            budget = limit * len(steps)
            called = None
            if not one_by_one and places is not None:
                self._claim(budget, "run")
                called = time.perf_counter_ns()
                self._send(None)
            answer = self._claim(budget, "run")
            sample = None
            if places is not None:
                sample = Sample(places, self._sample(places))
                stop = time.perf_counter_ns()
                self.freeze()
            else:
                self.freeze()
                stop = time.perf_counter_ns()  # not sooner: until it has stopped it can compute
                self._read(steps)
            seconds = ((called or stop) - start) / 1e9, (stop - start) / 1e9
            blocks.append(Block(len(steps), *seconds, _forms(answer, len(steps)), sample))
        self.amid = False
        return blocks

    def one_at_a_time(
        self,
        slots: Sequence[int],
        stage: Stage,
        *,
        seeds: list[int] | None = None,
        scalars: dict[int, list[Any]] | None = None,
        busy: float = 0.0,
        null: bool = False,
    ) -> list[Block]:
        """Calls one by one, a block each. Where outputs are named the runner is not stopped between them, which takes
        longer than a short call: each input is released once secret elements of the output before have been read.
        """
        if self.names is None:
            return self.run(slots, stage, one_by_one=True, seeds=seeds, scalars=scalars, busy=busy, null=null)
        assert self.memory is not None
        self.amid = True
        self.thaw()
        self._send({"do": "run", "slots": list(slots), "one_by_one": True, "keep": True, "null": null})
        self._claim(self.call_timeout + GRACE_SECONDS, "run")
        blocks, seen = [], []
        for slot in slots:
            begin, end = stage.part([slot])
            fresh, place = stage.arena.data[begin:end], self.arenas[0].data[begin:end]
            chosen = self._secret_elements()
            start = time.perf_counter_ns()
            place.copy_(fresh)
            self._send((scalars, seeds))
            answer = self._claim(self.call_timeout, "run")
            try:
                words = [self.names.peek(self.memory, slot, leaf, index) for leaf, index in chosen]
            except OSError as error:
                raise FaultError("dishonest", f"an output lies where it cannot be read: {error}") from error
            seconds = (time.perf_counter_ns() - start) / 1e9
            blocks.append(Block(1, seconds, seconds, _forms(answer, 1)))
            seen.append((slot, chosen, words))
        self.freeze()
        self._read(slots)
        for slot, chosen, words in seen:
            views = self.output_views(slot)
            for (leaf, index), word in zip(chosen, words, strict=True):
                if bytes(views[leaf][index].reshape(1).view(torch.uint8).numpy()) != word:
                    raise FaultError(
                        "dishonest", "outputs were still being written after they were said to be complete"
                    )
        self.amid = False
        return blocks

    def _secret_elements(self) -> list[tuple[int, tuple[int, ...]]]:
        """Elements of an output: the number of its tensor, and the place in it."""
        filled = [number for number, leaf in enumerate(self.outputs.leaves) if leaf.numel]
        chosen = self.source.choices(filled, k=PEEKS) if filled else []
        shapes = [(number, self.outputs.leaves[number].shape) for number in chosen]
        return [(number, tuple(self.source.randrange(size) for size in shape)) for number, shape in shapes]

    def confirm(self, blocks: Sequence[Block]) -> None:
        """The samples that stopped the clock are still what lies in the arena. Raises FaultError."""
        for block in blocks:
            if block.sampled is not None and not torch.equal(block.sampled.words, self._sample(block.sampled.places)):
                raise FaultError("dishonest", "outputs were still being written after they were said to be complete")

    def deliver_again(self, slots: Sequence[int]) -> None:
        """What the last run kept of the outputs of these slots lies in our hands as it is now."""
        self.ask({"do": "deliver_again"}, self.call_timeout + GRACE_SECONDS)
        if self.names:
            self._read(slots)

    def _read(self, slots: Sequence[int]) -> None:
        """The named outputs, from the stopped runner's memory."""
        assert self.names is not None
        assert self.memory is not None
        try:
            for slot in slots:
                self.names.read(self.memory, slot, self.arenas[1])
        except OSError as error:
            raise FaultError("dishonest", f"an output lies where it cannot be read: {error}") from error

    def observe(self, slot: int, seed: int | None) -> dict[str, Any]:
        return self.ask({"do": "observe", "slot": slot, "seed": seed}, self.call_timeout + GRACE_SECONDS)

    def _secret_places(self, slots: Sequence[int]) -> torch.Tensor:
        """Random positions in the outputs of these slots, counted in words of 4 bytes."""
        starts, sizes = [], []
        for slot in slots:
            for offset, leaf in zip(self.outputs.offsets, self.outputs.leaves, strict=True):
                starts.append((slot * self.outputs.stride + offset) // 4)
                sizes.append(max(1, -(-leaf.nbytes // 4)))
        where = torch.rand(len(starts), SAMPLE, dtype=torch.float64, generator=self.random)
        first, words = torch.tensor(starts, dtype=torch.long), torch.tensor(sizes, dtype=torch.long)
        places = first.unsqueeze(1) + (where * words.unsqueeze(1)).long()
        return places.flatten().to(self.device)

    def _poison(self, slots: Sequence[int]) -> None:
        """Random bytes where the outputs will be, so that what lay there before can pass for none of them."""
        begin, end = slots[0] * self.outputs.stride, (slots[-1] + 1) * self.outputs.stride
        self.arenas[1].data[begin:end].random_()

    def _sample(self, places: torch.Tensor) -> torch.Tensor:
        found = self.arenas[1].data.view(torch.int32)[places]
        self._synchronize()
        return found

    def _send(self, message: Any, fds: list[int] | None = None) -> None:
        try:
            self.channel.send_pickle(message, fds)
        except ChannelClosedError as error:
            raise FaultError("crashed", "the process ended") from error

    def _claim(self, timeout: float, doing: str) -> dict[str, Any]:
        try:
            answer = self.channel.recv_json(timeout)
        except ChannelTimeoutError as error:
            what = {"build": "building", "run": "a call"}.get(doing, doing)
            raise FaultError("timed_out", f"{what} did not end within {timeout:.0f} s") from error
        except ChannelClosedError as error:
            raise FaultError("crashed", f"the process ended while it was asked to {doing}") from error
        except ClaimError as error:
            raise FaultError("dishonest", f"wrote into the referee's channel: {error}") from error
        if not isinstance(answer, dict):
            raise FaultError("dishonest", "an answer has no proper form")
        if "failed" in answer:
            category = str(answer["failed"])
            if category not in REJECTED_CATEGORIES:
                category = "dishonest"
            raise FaultError(category, str(answer.get("line") or answer.get("error"))[:2000])
        return answer

    def _synchronize(self) -> None:
        if self.device != "cpu":
            torch.cuda.synchronize()


def _forms(answer: dict[str, Any], count: int) -> list[Any]:
    """The claimed forms of `count` outputs; None stands for a plain tensor, and alone for nothing but such."""
    forms = answer.get("forms")
    if forms is None:
        return [None] * count
    if not isinstance(forms, list) or len(forms) != count:
        raise FaultError("dishonest", "an answer to a call has no proper form")
    return forms
