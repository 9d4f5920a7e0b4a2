"""The runner: builds a module and calls it on inputs in shared memory, as the trusted worker says.

Candidates and the reference are both run by this code, in equal sandboxes, so that what the protocol costs is
the same on both sides. Nothing it says is believed: what counts is read from the arenas by the trusted side.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import sys
import traceback
from pathlib import Path
from typing import Any

import torch

from cudal1_core.referee import arena as arenas
from cudal1_core.referee import flags, linux, loading, win
from cudal1_core.referee.channel import Channel, ChannelClosedError
from cudal1_core.referee.layout import Slots, Tree, form_of, lay_out, tensors_of
from cudal1_core.referee.naming import Names

ERROR_LIMIT = 4000  # characters of an error that are passed on


def main(fd: int) -> None:
    linux.keep_freed_memory()
    channel = Channel.from_fd(fd)
    with contextlib.suppress(ChannelClosedError):
        runner = Runner(channel)
        while True:
            message = channel.recv_pickle()
            if message["do"] == "exit":
                return
            try:
                reply = getattr(runner, message.pop("do"))(**message)
            except ChannelClosedError:
                raise
            except BaseException as error:
                reply = _failure(error)
            if reply is not None:
                channel.send_json(reply)


def _failure(error: BaseException) -> dict[str, str]:
    out_of_memory = isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)
    text = "".join(traceback.format_exception(error))
    return {
        "failed": "out_of_memory" if out_of_memory else "crashed",
        "error": f"{type(error).__name__}: {error}"[:ERROR_LIMIT],
        "traceback": text[-ERROR_LIMIT:],
    }


class Runner:
    """One built module and its arenas. Each public method is one message of the trusted worker."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.model: Any = None
        self.device = "cpu"
        self.arguments: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        self.inputs: list[list[torch.Tensor]] = []
        self.tree: Tree | None = None
        self.slots: Slots = lay_out((), 0)  # of the outputs
        self.outputs: list[list[torch.Tensor]] = []  # where they are copied to; empty where they are named
        self.names: Names | None = None
        self.state: dict[str, torch.Tensor] = {}
        self.kept: dict[int, Any] = {}
        self.alive: list[Any] = []  # what is read from this process's memory once it is stopped

    def build(
        self,
        path: str,
        class_name: str,
        is_reference: bool,
        settings: dict[str, Any],
        device: str,
        mode: str,
        seed: int,
        init: tuple[tuple[Any, ...], dict[str, Any]],
    ) -> dict[str, Any]:
        """Imports the file and constructs the class; answers with the names and shapes of its state."""
        self.device = device
        flags.apply(settings)
        try:
            if not is_reference:
                sys.path.insert(0, str(Path(path).parent))  # the reference's helper modules lie there
            module = loading.load_file(Path(path), Path(path).stem, with_folder=is_reference)
        except BaseException as error:
            traceback.print_exc()
            return {**_failure(error), "failed": "build_failed", "line": loading.error_line(error, path)}
        built = getattr(module, class_name, None)
        if not isinstance(built, type):
            return {"failed": "no_code", "error": f"the file defines no class {class_name}"}
        try:
            torch.manual_seed(seed)
            self.model = built(*init[0], **init[1])
            if isinstance(self.model, torch.nn.Module):
                self.model.to(device)
                if mode != "as-built":
                    self.model.train(mode == "train")
            self._synchronize()
        except BaseException as error:
            traceback.print_exc()
            kind = _failure(error)
            failed = "out_of_memory" if kind["failed"] == "out_of_memory" else "build_failed"
            return {**kind, "failed": failed, "line": loading.error_line(error, path)}
        if not callable(self.model):
            return {"failed": "build_failed", "error": f"{class_name} cannot be called"}
        gc.collect()
        gc.freeze()  # so that the collection before each block does not walk all of torch
        state = self._state_dict()
        return {"built": [[name, str(value.dtype), list(value.shape)] for name, value in state.items()]}

    def build_ahead(self, path: str, what: bytes) -> dict[str, Any]:
        """Builds without a GPU, for what its compilers make meanwhile; `what` is the trusted worker's message."""
        return self.build(**{**pickle.loads(what), "path": path, "device": "cpu"})

    def attach(
        self,
        inputs: Slots,
        tree: Tree,
        outputs: Slots,
        state: Slots,
        state_names: list[str],
        sizes: list[int],
        named: bool,
        spoil: bool,
    ) -> dict[str, Any]:
        """Maps the three arenas whose descriptors came with the message: inputs, outputs or their names, state."""
        linux.spoil_fresh_memory(spoil)
        shared = [arenas.attach(self.device, size, fd) for size, fd in zip(sizes, self.channel.take_fds(), strict=True)]
        self.tree = tree
        self.inputs = [inputs.views(shared[0], index) for index in range(inputs.count)]
        self.arguments = [tree.build(tensors) for tensors in self.inputs]
        self.slots = outputs
        self.names = Names.over(outputs, shared[1]) if named else None
        self.outputs = [] if named else [outputs.views(shared[1], index) for index in range(outputs.count)]
        self.state = dict(zip(state_names, state.views(shared[2], 0), strict=True))
        self._shared = shared
        return {"attached": True}

    def load_state(self) -> dict[str, Any]:
        self.model.load_state_dict({name: value.clone() for name, value in self.state.items()}, strict=True)
        self._synchronize()
        return {"loaded": True}

    def save_state(self) -> dict[str, Any]:
        current = self._state_dict()
        for name, value in self.state.items():
            value.copy_(current[name])
        self._synchronize()
        return {"saved": True}

    def run(
        self,
        slots: list[int],
        one_by_one: bool,
        grad: bool = False,
        null: bool = False,
        delay: bool = False,
        keep: bool = False,
    ) -> None:
        """Calls the module once a slot.

        All at once: waits for "go", calls on every slot, names the outputs' addresses, and answers with their forms.
        Where outputs are copied: synchronises after the calls, answers "called", waits until that is noted, copies them
        out, synchronises, answers with their forms. One by one: a "go", a call and an answer for each slot, a copy
        queued straight after the call with no synchronisation between. `null` returns ready outputs of the same size
        instead of calling, which is what the protocol alone costs.
        """
        self.kept, self.alive = {}, []
        gc.collect()
        gc.disable()
        ready = {slot: self._ready() for slot in slots} if null else {}
        spark = torch.zeros(1, device=self.device)
        try:
            with torch.enable_grad() if grad else torch.no_grad():
                self.channel.send_json({"ready": True})
                for steps in [[slot] for slot in slots] if one_by_one else [slots]:
                    scalars, seeds = self.channel.recv_pickle()
                    made = []
                    if null and self.device != "cpu":
                        spark.add_(1)  # the first launch of a block wakes the device, on every side
                    for slot in steps:
                        if delay:
                            torch.cuda._sleep(20_000_000)  # type: ignore[no-untyped-call]
                        if seeds is not None:
                            torch.manual_seed(seeds[slot])
                        args, kwargs = self._arguments(slot, scalars)
                        made.append(ready[slot] if null else self.model(*args, **kwargs))
                    if not one_by_one and self.names is None:
                        self._synchronize()
                        self.channel.send_json({"called": True})
                        self.channel.recv_pickle()
                    if keep:
                        self.kept.update(zip(steps, made, strict=True))
                    else:
                        self.alive = []
                    self._deliver(dict(zip(steps, made, strict=True)))
        finally:
            gc.enable()

    def _ready(self) -> Any:
        """Zeros of the output's size; one alone is no list, since a plain tensor is delivered quicker."""
        made = [torch.zeros(leaf.shape, dtype=leaf.dtype, device=self.device) for leaf in self.slots.leaves]
        return made[0] if len(made) == 1 else made

    def deliver_again(self) -> None:
        """The outputs kept by the last run once more, after later calls."""
        self.alive = []
        self._deliver(self.kept)

    def _deliver(self, made: dict[int, Any]) -> None:
        """Names or copies the outputs and answers with their forms, or with None where all are plain tensors."""
        if self.names is not None:
            self.alive.append(made)
            forms = [self._name(slot, value) for slot, value in made.items()]
        else:
            forms = [self._copy_out(slot, value) for slot, value in made.items()]
            self._synchronize()
        self.channel.send_json({"forms": forms if any(forms) else None})

    def observe(self, slot: int, seed: int | None) -> dict[str, Any]:
        args, kwargs = self.arguments[slot]
        if seed is not None:
            torch.manual_seed(seed)
        with torch.no_grad():
            return win.observe(lambda: self.model(*args, **kwargs), os.environ.get("PWD", "/"))

    def _arguments(self, slot: int, scalars: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if scalars is None or self.tree is None:
            return self.arguments[slot]
        return Tree(self.tree.spec, tuple(scalars[slot])).build(self.inputs[slot])  # type: ignore[no-any-return]

    def _name(self, slot: int, value: Any) -> list[Any] | None:
        """Names the output's tensors; its form, or None for a plain tensor as expected."""
        assert self.names is not None
        leaves = self.slots.leaves
        if type(value) is torch.Tensor and len(leaves) == 1:
            expected = value.dtype == leaves[0].dtype and value.shape == leaves[0].shape and value.device.type == "cpu"
            if expected and value.layout is torch.strided:
                self.alive += self.names.write(slot, [value])
                return None
        form = form_of(value)
        with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
            self.alive += self.names.write(slot, tensors_of(value, self.device))
        return form

    def _copy_out(self, slot: int, value: Any) -> list[Any] | None:
        """Copies the output's tensors into their slots; its form, or None for a plain tensor as expected."""
        if type(value) is torch.Tensor and len(self.outputs[slot]) == 1:
            target = self.outputs[slot][0]
            expected = value.dtype == target.dtype and value.shape == target.shape and value.device == target.device
            if expected and value.layout is torch.strided:
                torch.Tensor.copy_(target, value)
                return None
        form = form_of(value)
        tensors = tensors_of(value, self.device)
        with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
            for target, tensor in zip(self.outputs[slot], tensors, strict=False):
                if tensor.dtype == target.dtype and tensor.shape == target.shape and tensor.device == target.device:
                    # unbound, so that methods hung on the tensor itself are never called
                    torch.Tensor.copy_(target, tensor)
        return form

    def _state_dict(self) -> dict[str, torch.Tensor]:
        if not isinstance(self.model, torch.nn.Module):
            return {}
        return {k: v for k, v in self.model.state_dict().items() if isinstance(v, torch.Tensor)}

    def _synchronize(self) -> None:
        if self.device != "cpu":
            torch.cuda.synchronize()
