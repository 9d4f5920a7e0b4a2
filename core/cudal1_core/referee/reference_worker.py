"""The trusted worker of one task: runs the reference, draws the inputs, holds the truth, the clock and the comparison.

It never runs candidate code and takes nothing from a candidate but bounded JSON and raw memory. The clock is
kept here and not in the host: between the release of inputs and the sampling of outputs there is then no
third process, and the candidate can reach neither.
"""

from __future__ import annotations

import base64
import contextlib
import os
import pickle
import secrets
import socket
import tokenize
import traceback
from pathlib import Path
from typing import Any

import torch

from cudal1_core.candidate import source_hash
from cudal1_core.errors import UnjudgeableError
from cudal1_core.referee import beyond, flags, loading, qualify
from cudal1_core.referee.channel import Channel, ChannelClosedError
from cudal1_core.referee.cores import Cores, set_aside
from cudal1_core.referee.drawing import InputSource
from cudal1_core.referee.judging import Judging, Rules
from cudal1_core.referee.layout import leaf_of, same_bits
from cudal1_core.referee.otherwise import time_baseline
from cudal1_core.referee.pairs import time_alone
from cudal1_core.referee.qualify import Qualified
from cudal1_core.referee.quiet import Canary
from cudal1_core.referee.runner import FaultError, Runner
from cudal1_core.referee.truth import Truth
from cudal1_core.referee.turn import cpu_turn, gpu_turn
from cudal1_core.reference import Task

MOST_CARRIED = 16 << 20  # bytes of constructor arguments with which candidates are built ahead
OTHER_WEIGHTS = 2  # sets of changed weights a task is judged with


def main(fd: int) -> None:
    host = Channel.from_fd(fd)
    worker = Worker(host)
    with contextlib.suppress(ChannelClosedError):
        while True:
            message = host.recv_pickle()
            if message["do"] == "exit":
                return
            try:
                result = getattr(worker, message.pop("do"))(**message)
                host.send_json({"result": result})
            except UnjudgeableError as error:
                parts = {"category": error.category, "title": error.title, "meaning": error.meaning}
                host.send_json({"unjudgeable": {**parts, "next_step": error.next_step}})
            except ChannelClosedError:
                raise
            except torch.OutOfMemoryError as error:
                host.send_json({"unjudgeable": _no_memory(error)})
            except Exception as error:
                trace = "".join(traceback.format_exception(error))
                host.send_json({"failed": f"{type(error).__name__}: {error}"[:500], "traceback": trace[-4000:]})


class Worker:
    """Answers the host's messages: open once, then judge any number of candidates."""

    def __init__(self, host: Channel) -> None:
        self.host = host
        self.q: Qualified | None = None
        self.reference: Runner | None = None

    def open(
        self, path: str, model: str | None, device: str, mode: str, call_timeout: float, build_timeout: float
    ) -> dict[str, Any]:
        """Reads and qualifies the reference; the answer is a Task as JSON, its helper modules and eager ms."""
        channel_fd, control_fd = self.host.take_fds()
        where = Path(path)
        chosen = _device(device)
        self.mode = mode
        with gpu_turn(chosen, self._on_wait):
            eager_ms = self._qualify(
                where, model, chosen, Channel.from_fd(channel_fd), control_fd, call_timeout, build_timeout
            )
        assert self.q is not None
        q = self.q
        helpers = {name: content.decode("latin-1") for name, content in loading.helper_files(where).items()}
        return {
            "task": _task(q, where).to_json(),
            "helpers": helpers,
            "eager_ms": eager_ms,
            "versions": {"torch": torch.__version__, "cuda": torch.version.cuda or "none"},
            "seed": f"{q.inputs.seed:016x}",
            "cores": q.cores.rest,
            "building": _building(q, self.mode),
        }

    def _qualify(
        self,
        path: Path,
        model: str | None,
        device: str,
        channel: Channel,
        control_fd: int,
        call_timeout: float,
        build_timeout: float,
    ) -> float:
        """Reads, builds and examines the reference; milliseconds a call of it alone."""
        self.q = q = read(path, model, device, self.mode)
        self.reference = Runner(channel, socket.socket(fileno=control_fd), q.canary, call_timeout)
        try:
            self.reference.freeze()
            self.reference.build(
                build_timeout,
                path=str(path),
                class_name=q.class_name,
                is_reference=True,
                settings=q.settings,
                device=device,
                mode=self.mode,
                seed=q.build_seed,
                init=q.init,
            )
            qualify.examine(q)
            q.beyond = beyond.usable(q)
            with cpu_turn(device, self._on_wait):
                return time_alone(q, self.reference) * 1e3
        except FaultError as fault:
            raise UnjudgeableError(
                "reference_failed",
                f"{path}: the reference fails in a worker of its own: {fault.reason}",
                "It was built and called a second time, in a fresh process.",
                "Check that it does not depend on files or state that only one process can have.",
            ) from fault

    def judge(self, rules: dict[str, Any]) -> dict[str, Any]:
        """Judges the candidate behind the two descriptors that came along; the answer is most of a Verdict."""
        assert self.q is not None
        assert self.reference is not None
        channel_fd, control_fd = self.host.take_fds()
        made = Rules(mode=self.mode, **rules)
        candidate = Runner(
            Channel.from_fd(channel_fd), socket.socket(fileno=control_fd), self.q.canary, made.call_timeout
        )
        try:
            verdict = Judging(self.q, self.reference, candidate, made, self._tell).verdict()
            return {**verdict, "amid": self.reference.amid}
        finally:
            candidate.close()

    def baseline(self, rules: dict[str, Any], name: str) -> dict[str, float]:
        """Times the reference run as the baseline `name` by the runner behind the two descriptors that came along."""
        assert self.q is not None
        assert self.reference is not None
        channel_fd, control_fd = self.host.take_fds()
        made = Rules(mode=self.mode, **rules)
        runner = Runner(Channel.from_fd(channel_fd), socket.socket(fileno=control_fd), self.q.canary, made.call_timeout)
        try:
            return time_baseline(self.q, self.reference, runner, made, name, self._on_wait)
        finally:
            runner.close()

    def _on_wait(self, waits: bool) -> None:
        self._tell(waits=waits)

    def _tell(self, **fact: Any) -> None:
        self.host.send_json({"fact": fact})


def _building(q: Qualified, mode: str) -> dict[str, str]:
    """For a host that has candidates built ahead: the message to a runner, and torch's name for the GPUs in sight."""
    message = pickle.dumps(q.building(mode), protocol=5)
    named = ""
    if q.device != "cpu" and "TORCH_CUDA_ARCH_LIST" not in os.environ:
        seen = sorted({torch.cuda.get_device_capability(index) for index in range(torch.cuda.device_count())})
        named = ";".join(f"{major}.{minor}" for major, minor in seen) + "+PTX"
    carried = base64.b64encode(message).decode() if len(message) <= MOST_CARRIED else ""
    return {"message": carried, "architectures": named}


def _no_memory(error: Exception) -> dict[str, str]:
    return {
        "category": "unsupported",
        "title": "the device has too little memory to hold this task's inputs and outputs a second time",
        "meaning": str(error).splitlines()[0][:300],
        "next_step": "Free the device of other programs, or make get_inputs() return smaller tensors.",
    }


def read(path: Path, wanted: str | None, device: str, mode: str) -> Qualified:
    """Runs the reference's file and describes what it holds. Raises UnjudgeableError."""
    text = _text(path)
    try:
        module = loading.load_file(path, path.stem, with_folder=True)
    except SyntaxError as error:
        raise UnjudgeableError(
            "bad_reference",
            loading.error_line(error, str(path)),
            "The reference is not valid Python.",
            "Fix that line.",
        ) from error
    except ImportError as error:
        raise UnjudgeableError(
            "bad_reference",
            loading.error_line(error, str(path)),
            "The reference imports something that is not installed here or not beside it.",
            f"Install it into this environment, or put the module into {path.parent}.",
        ) from error
    except BaseException as error:
        raise UnjudgeableError(
            "reference_failed",
            loading.error_line(error, str(path)),
            "Running the file raised.",
            "Run it by itself first.",
        ) from error
    model_class = loading.find_model(module, wanted, path)
    get_inputs, get_init_inputs = loading.input_functions(module, path)
    build_seed = secrets.randbits(62)
    settings_before = flags.snapshot()
    try:
        torch.manual_seed(build_seed)
        init = loading.arguments(get_init_inputs())
        model = _construct(model_class, init, build_seed, device, mode)
    except Exception as error:
        raise UnjudgeableError(
            "reference_failed",
            loading.error_line(error, str(path)),
            f"Constructing {model_class.__name__} from get_init_inputs() raised.",
            "Make get_init_inputs() return the constructor's arguments, as a list or a dict.",
        ) from error
    try:
        inputs = InputSource(get_inputs, device)
    except UnjudgeableError:
        raise
    except Exception as error:
        raise UnjudgeableError(
            "reference_failed",
            loading.error_line(error, str(path)),
            "get_inputs() raised.",
            "Call it by itself first.",
        ) from error
    draw = inputs.pool[0]
    value = qualify.call(model, draw, path)
    form, outputs = qualify.output_form(value, path, device)
    seeded = qualify.draws_random_numbers(model, draw, path, device)
    fresh = _construct(model_class, init, build_seed, device, mode)  # not called yet, so its state is as built
    state = {k: v.detach().clone() for k, v in _state_dict(fresh).items()}
    generator = torch.Generator(device)
    generator.manual_seed(secrets.randbits(62))
    others = qualify.other_states(model, state, device, OTHER_WEIGHTS) if state else []
    canary = Canary(device)
    return Qualified(
        path=path,
        class_name=model_class.__name__,
        model=model,
        device=device,
        init=init,
        build_seed=build_seed,
        settings=settings_before,
        inputs=inputs,
        truth=Truth(fresh, device, seeded, generator),
        seeded=seeded,
        form=form,
        outputs=outputs,
        state={name: leaf_of(value, contiguous=True) for name, value in state.items()},
        states=[state, *others],
        canary=canary,
        cores=Cores() if device == "cpu" else set_aside(torch.device(device).index or 0),
        tf32=qualify.uses_tf32(model, draw, path, device),
        text=text,
        stateful=any(not same_bits(state[name], value) for name, value in _state_dict(model).items() if name in state),
        labels=[] if canary.alone else ["foreign_load"],
    )


def _construct(model_class: type, init: Any, seed: int, device: str, mode: str) -> Any:
    torch.manual_seed(seed)
    model = model_class(*init[0], **init[1])
    if isinstance(model, torch.nn.Module):
        model.to(device)
        if mode != "as-built":
            model.train(mode == "train")
    return model


def _state_dict(model: Any) -> dict[str, torch.Tensor]:
    if not isinstance(model, torch.nn.Module):
        return {}
    return {k: v for k, v in model.state_dict().items() if isinstance(v, torch.Tensor)}


def _text(path: Path) -> str:
    try:
        with tokenize.open(path) as file:
            return file.read()
    except (SyntaxError, UnicodeDecodeError) as error:
        raise UnjudgeableError(
            "bad_reference",
            f"{path}: {error}",
            "The file is not text that Python can read.",
            "Save it as UTF-8.",
        ) from error
    except OSError as error:
        raise UnjudgeableError("bad_reference", f"{path}: {error.strerror}", "", "Check the path.") from error


def _device(wanted: str) -> str:
    if wanted == "cpu" or (wanted == "auto" and not torch.cuda.is_available()):
        return "cpu"
    index = 0 if wanted in ("auto", "cuda") else int(wanted.partition(":")[2] or 0)
    count = torch.cuda.device_count()
    if index >= count:
        built = torch.version.cuda or "no CUDA"
        raise UnjudgeableError(
            "no_device",
            f"there is no {wanted} here: torch {torch.__version__} (built with {built}) sees {count} CUDA device(s)",
            "",
            "Use --device cpu, or see what `cudal1-tui doctor` says.",
        )
    torch.cuda.set_device(index)
    return f"cuda:{index}"


def _task(q: Qualified, path: Path) -> Task:
    floating = next((leaf.dtype for leaf in q.outputs if leaf.dtype.is_floating_point), None)
    dtype = floating or (q.outputs[0].dtype if q.outputs else torch.float32)
    return Task(
        path=str(path),
        model=q.class_name,
        source=q.text,
        source_hash=source_hash(q.text),
        device=q.device,
        device_name=torch.cuda.get_device_name(q.device) if q.device != "cpu" else _processor(),
        dtype=str(dtype).removeprefix("torch."),
        inputs=tuple(leaf.text() for leaf in q.inputs.tree.tensors),
        outputs=tuple(leaf.text() for leaf in q.outputs),
        parameters=sum(leaf.numel for leaf in q.state.values()),
        labels=tuple(q.labels),
        checks=tuple(q.checks),
        flags=q.settings,
    )


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return "CPU"
