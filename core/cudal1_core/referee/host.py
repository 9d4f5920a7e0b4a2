"""The referee as the rest of the program sees it: starts the processes, carries messages, assembles verdicts.

Runs in the event loop of the command line or the workbench; imports no torch.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import platform
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import psutil

from cudal1_core import baselines
from cudal1_core.baselines import Timed
from cudal1_core.errors import RefereeError, UnjudgeableError
from cudal1_core.events import BaselineTimed, CheckFinished, Event, PairsMeasured, StageStarted, TimingSampled
from cudal1_core.referee import sandbox
from cudal1_core.referee.channel import ChannelClosedError, pair
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.referee.processes import END_SECONDS, Line, Process, death
from cudal1_core.referee.sandbox import Spec
from cudal1_core.reference import Task
from cudal1_core.verdict import Check, Verdict

Walls = Literal["none", "process", "all"]

FOLDER = "cudal1-"
START_SECONDS = 120.0  # importing torch on a cold disk
BASELINE = """\
from cudal1_core.referee.variants import variant
ModelNew = variant({path!r}, {class_name!r}, {name!r})
"""
OVERALL_SECONDS = 900.0  # longest a single judgement may take before the referee itself is at fault


class Referee:
    """Judges candidates of one reference. Use as `async with Referee(options) as referee`."""

    def __init__(self, options: JudgeOptions, *, log_dir: Path | None = None) -> None:
        self.options = options
        _sweep()
        self.root = Path(tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid()}-"))
        self.log_dir = log_dir or self.root
        self.path: Path | None = None  # of the reference
        self.task: Task | None = None
        self.helpers: dict[str, bytes] = {}
        self.versions: dict[str, str] = {}
        self.seed = ""
        self.processes: list[Process] = []
        self.line: Line | None = None
        self.trusted: Process | None = None
        self.zygote: asyncio.subprocess.Process | None = None
        self.count = 0
        self.eager_ms: float | None = None
        self.ratios: dict[str, float] = {}  # of the other baselines that are known: eager's time over theirs
        self.cores: tuple[int, ...] = ()  # for candidates while they are not timed; empty: all

    async def __aenter__(self) -> Referee:
        await self._start_zygote()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self, reference: Path) -> Task:
        """Reads and qualifies a reference in processes of its own, in place of the one before.

        Raises UnjudgeableError, RefereeError.
        """
        path = reference.absolute()
        if path != self.path:
            self.ratios = {}
        self.path = path
        _look(path)
        await self._leave()
        if self.zygote is None:
            await self._start_zygote()
        ours, theirs = pair()
        self.trusted = await self._spawn(self._spec("trusted", "reference", walls="none"), theirs)
        self.line = Line(ours)
        await self.line.connect()
        fds = await self._runner("reference-runner", walls="process", files={})
        await self._hand_over(
            {
                "do": "open",
                "path": str(path),
                "model": self.options.model,
                "device": self.options.device,
                "mode": self.options.mode,
                "call_timeout": self.options.timeout_s,
                "build_timeout": self.options.build_timeout_s,
            },
            fds,
        )
        self.zygote_line.sender.send_pickle(None)  # while the reference is read, it gets ready for candidates
        limit = self.options.build_timeout_s * 2 + self.options.timeout_s * 10
        result = await self._result(limit, lambda fact: None)
        self.task = Task.from_json(result["task"])
        self.helpers = {name: text.encode("latin-1") for name, text in result["helpers"].items()}
        self.versions = {"python": platform.python_version(), **result["versions"]}
        self.seed = result["seed"]
        self.eager_ms = float(result["eager_ms"])
        self.cores = tuple(result["cores"])
        return self.task

    async def judge(self, candidate_id: str, source: str | bytes, emit: Callable[[Event], None]) -> Verdict:
        """A verdict on one candidate of the opened reference, with its evidence sent to `emit` as it arises."""
        if self.path is None:
            raise RefereeError("no reference is open")
        if self.line is None:  # the trusted worker died, or broke off, on an earlier candidate
            await self.open(self.path)
        text = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
        if not text.strip():
            return self._complete(
                {"verdict": "rejected", "category": "no_code", "reason": "there is no code in the answer"}, ()
            )
        files = {**self.helpers, "candidate.py": text}
        fds = await self._runner(candidate_id, walls="all", files=files)
        process = self.processes[-1]
        rules = self._rules(process)

        def on_fact(fact: dict[str, Any]) -> None:
            for event in _events(candidate_id, fact):
                emit(event)

        try:
            await self._hand_over({"do": "judge", "rules": rules}, fds)
            result = await self._result(OVERALL_SECONDS + self.options.timing_budget_s, on_fact)
            if result["amid"]:
                self._hang_up()
            if result.get("category") == "crashed":
                await process.settled()
                result = _explain_crash(result, process)
            return self._complete(result, process.isolation)
        except asyncio.CancelledError:
            self._hang_up()  # the workers of the reference are amid this candidate
            raise
        finally:
            self.processes.remove(process)
            await process.end()
            if self.log_dir == self.root:  # nobody will read what it printed
                process.log.unlink(missing_ok=True)

    def _rules(self, process: Process) -> dict[str, Any]:
        return {
            "path": str(process.folder / "candidate.py"),
            "call_timeout": self.options.timeout_s,
            "build_timeout": self.options.build_timeout_s,
            "timing_budget_s": self.options.timing_budget_s,
            "timing": self.options.timing,
            "allow_precision": self.options.allow_precision,
            "allow_output_reuse": self.options.allow_output_reuse,
        }

    def baselines(self) -> list[Event]:
        """What the reference was timed at so far, as events."""
        return [BaselineTimed(baseline=name, ms=ms) for name, ms in self._milliseconds().items()]

    def baseline_key(self) -> str:
        """Stands for all that a baseline's time depends on."""
        assert self.task is not None
        return baselines.key(self.task, self.helpers, self.versions, self.options.mode)

    def know_baseline(self, name: str, ratio: float) -> BaselineTimed:
        """Every verdict from now on carries this baseline; `ratio` is eager's time over its own."""
        self.ratios[name] = ratio
        return BaselineTimed(baseline=name, ms=self._milliseconds()[name])

    async def time_baseline(self, name: str) -> Timed:
        """Eager against the reference run as `name`. Raises UnjudgeableError where it cannot be had."""
        if self.line is None and self.path is not None:
            await self.open(self.path)
        task = self.task
        if task is None:
            raise RefereeError("no reference is open")
        source = BASELINE.format(path=task.path, class_name=task.model, name=name)
        fds = await self._runner(f"baseline-{name}", walls="process", files={"candidate.py": source.encode()})
        process = self.processes[-1]
        message = {"do": "baseline", "rules": self._rules(process), "name": name}
        try:
            await self._hand_over(message, fds)
            result = await self._result(OVERALL_SECONDS + self.options.timing_budget_s, lambda fact: None)
            return Timed(result["ratio"], result["half_interval"])
        except asyncio.CancelledError:
            self._hang_up()
            raise
        finally:
            self.processes.remove(process)
            await process.end()

    def _milliseconds(self) -> dict[str, float]:
        """By baseline; empty before a reference is open."""
        if self.eager_ms is None:
            return {}
        return {"eager": self.eager_ms, **{name: self.eager_ms / ratio for name, ratio in self.ratios.items()}}

    async def _leave(self) -> None:
        """Ends the workers of the reference."""
        self.task = None
        self._hang_up()
        await asyncio.gather(*(process.end() for process in self.processes))
        self.processes = []

    async def close(self) -> None:
        """Ends every child and removes every temporary file."""
        await self._leave()
        if self.zygote is not None:
            self.zygote_line.close()
            with contextlib.suppress(ProcessLookupError):
                self.zygote.kill()  # it keeps nothing, and may be in the middle of a long import
            await self.zygote.wait()
            self.zygote = None
        await asyncio.to_thread(shutil.rmtree, self.root, True)

    async def _start_zygote(self) -> None:
        ours, theirs = pair()
        environment = sandbox.passed_on()
        environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p and Path(p).is_absolute())
        self.zygote_line = Line(ours)  # connected first, so that a start that is cut off can be closed in order
        await self.zygote_line.connect()
        log = (self.log_dir / "zygote.log").open("wb")
        with log:
            self.zygote = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "cudal1_core.referee.zygote", str(theirs.fileno()),
                pass_fds=[theirs.fileno()], env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        theirs.close()
        try:
            await self.zygote_line.receive(START_SECONDS)
        except (EOFError, TimeoutError) as error:
            words = (self.log_dir / "zygote.log").read_text(errors="replace").strip()[-800:]
            raise RefereeError(
                "the referee's processes do not start",
                words,
                "Run `cudal1-tui doctor` to see whether torch works.",
            ) from error

    def _spec(self, name: str, role: str, *, walls: Walls, files: dict[str, bytes] | None = None) -> Spec:
        self.count += 1
        folder = self.root / f"w{self.count}"
        folder.mkdir(mode=0o700)
        hostile = walls == "all"
        return Spec(
            role=role,
            folder=str(folder),
            files=files or {},
            walls=walls,
            log=str(self.log_dir / f"{name}.log"),
            environment=sandbox.passed_on() if hostile else dict(os.environ),
            read=tuple(str(path.absolute()) for path in self.options.expose) if hostile else (),
            cores=self.cores if hostile else (),
            memory_limit=psutil.virtual_memory().available // 2 if hostile else 0,
        )

    async def _runner(self, name: str, *, walls: Walls, files: dict[str, bytes]) -> list[socket.socket]:
        """Starts a runner; the trusted worker's ends of its channel and control sockets."""
        channel_ours, channel_theirs = pair()
        control_ours, control_theirs = pair()
        await self._spawn(
            self._spec(name, "candidate", walls=walls, files=files),
            channel_theirs,
            control_theirs,
        )
        return [channel_ours, control_ours]

    async def _spawn(self, spec: Spec, channel: socket.socket, control: socket.socket | None = None) -> Process:
        report_ours, report_theirs = pair()
        kept = None
        if control is None:
            kept, control = pair()
        process = Process(report_ours, Path(spec.folder), Path(spec.log), kept)
        with os.fdopen(os.memfd_create("spec"), "w+b") as file:
            pickle.dump(spec, file)
            file.seek(0)
            ends = [file.fileno(), channel.fileno(), control.fileno(), report_theirs.fileno()]
            self.zygote_line.sender.send_pickle(None, ends)
        for sock in (channel, control, report_theirs):
            sock.close()
        self.processes.append(process)
        try:
            process.pid = (await self.zygote_line.receive(END_SECONDS * 10))["pid"]
        except (EOFError, TimeoutError) as error:
            raise RefereeError("the referee's process server is gone", "", "Start again.") from error
        return process

    async def _hand_over(self, message: dict[str, Any], ends: list[socket.socket]) -> None:
        assert self.line is not None
        try:
            self.line.send(message, [end.fileno() for end in ends])
        except ChannelClosedError as error:
            raise await self._trusted_died() from error
        finally:
            for end in ends:
                end.close()

    async def _result(self, limit: float, on_fact: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        assert self.line is not None
        left = limit
        waits = False  # for its turn on the device, which counts against nobody
        while True:
            begin = time.monotonic()
            try:
                answer = await self.line.receive(None if waits else left)
            except EOFError as error:
                raise await self._trusted_died() from error
            except TimeoutError as error:
                self._hang_up()
                raise UnjudgeableError(
                    "reference_failed",
                    f"the reference did not answer within {limit:.0f} s",
                    "Loading it, calling it or judging against it takes too long.",
                    "Try smaller inputs in get_inputs(), or raise --timeout and --build-timeout.",
                ) from error
            if not waits:
                left = max(0.1, left - (time.monotonic() - begin))
            if "fact" in answer:
                waits = answer["fact"].get("waits", waits)
                on_fact(answer["fact"])
            elif "failed" in answer:
                self._hang_up()
                raise RefereeError(
                    f"the referee failed: {answer['failed']}",
                    answer["traceback"],
                    "This candidate has no verdict. Please report the lines above.",
                )
            elif "unjudgeable" in answer:
                facts = answer["unjudgeable"]
                self._hang_up()
                raise UnjudgeableError(facts["category"], facts["title"], facts["meaning"], facts["next_step"])
            else:
                result: dict[str, Any] = answer["result"]
                return result

    def _hang_up(self) -> None:
        """The trusted worker and the reference's runner may have lost step: new ones serve the next candidate."""
        if self.line is not None:
            self.line.close()
            self.line = None

    async def _trusted_died(self) -> Exception:
        assert self.trusted is not None
        await self.trusted.settled()
        self._hang_up()
        how = death(self.trusted.exit_code)
        words = self.trusted.last_words()
        if self.task is None:
            return UnjudgeableError(
                "reference_failed",
                f"the reference ended its process: {how}",
                words[-800:],
                "Run the file by itself and call Model(*get_init_inputs())(*get_inputs()).",
            )
        return RefereeError(f"the trusted worker ended: {how}", words[-800:], "Judge again; if it stays, report it.")

    def _complete(self, result: dict[str, Any], isolation: tuple[str, ...]) -> Verdict:
        task = self.task
        assert task is not None
        labels = set(result.get("labels", ()))
        walls = ("pid namespace", "network namespace", "landlock")
        if isolation and not all(any(layer.startswith(wall) for layer in isolation) for wall in walls):
            labels.add("not_isolated")
        interval = result.get("speedup_interval")
        return Verdict(
            verdict=result["verdict"],
            category=result.get("category"),
            reason=result.get("reason"),
            speedup=result.get("speedup"),
            speedup_interval=(interval[0], interval[1]) if interval else None,
            reference_ms=result.get("reference_ms"),
            candidate_ms=result.get("candidate_ms"),
            win=result.get("win"),
            baselines=self._milliseconds(),
            checks=tuple(Check(*check) for check in result.get("checks", ())),
            labels=tuple(sorted(labels)),
            device={"device": task.device, "name": task.device_name, "flags": task.flags},
            isolation=isolation,
            versions=self.versions,
            seed=self.seed,
            roofline=result.get("roofline"),
        )


def _sweep() -> None:
    """Removes what a killed process left behind: folders whose owner is gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER}*"):
        owner = folder.name.removeprefix(FOLDER).partition("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)) and folder.stat().st_uid == os.getuid():
            shutil.rmtree(folder, ignore_errors=True)


def _look(path: Path) -> None:
    """What can be said of the path without running it."""
    if not path.exists():
        raise UnjudgeableError("bad_reference", f"{path}: there is no such file", "", "Check the path.")
    if path.is_dir():
        raise UnjudgeableError(
            "bad_reference",
            f"{path} is a folder",
            "",
            "Name one Python file that holds class Model and get_inputs().",
        )


def _events(candidate: str, fact: dict[str, Any]) -> list[Event]:
    if fact.get("waits"):
        return [StageStarted(candidate=candidate, stage="waiting")]
    if "stage" in fact:
        return [StageStarted(candidate=candidate, stage=fact["stage"])]
    if "check" in fact:
        return [CheckFinished(candidate=candidate, check=Check(*fact["check"]))]
    if "timing" in fact:
        reference_ms, candidate_ms, speedup, low, high, pairs = fact["timing"]
        return [
            TimingSampled(
                candidate=candidate,
                reference_ms=reference_ms,
                candidate_ms=candidate_ms,
                speedup=speedup,
                interval=(low, high),
                blocks=pairs,
            )
        ]
    if "measured" in fact:
        return [PairsMeasured(candidate=candidate, **fact["measured"])]
    return []


def _explain_crash(result: dict[str, Any], process: Process) -> dict[str, Any]:
    """Puts what the supervisor saw into a verdict on a process that ended."""
    if process.ended_for is not None:
        category, reason = process.ended_for
        return {**result, "category": category, "reason": reason}
    if "process ended" not in (result.get("reason") or ""):
        return result
    words = process.last_words().splitlines()
    last = f"; last output: {words[-1][:200]}" if words else ""
    return {**result, "reason": f"{result['reason']}: {death(process.exit_code)}{last}"}
