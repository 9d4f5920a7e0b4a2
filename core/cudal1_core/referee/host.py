"""The referee as the rest of the program sees it: starts the processes, carries messages, assembles verdicts.

Runs in the event loop of the command line or the workbench; imports no torch.
"""

from __future__ import annotations

import asyncio
import platform
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from cudal1_core import baselines
from cudal1_core.baselines import Timed
from cudal1_core.errors import RefereeError, UnjudgeableError
from cudal1_core.events import BaselineTimed, CheckFinished, Event, PairsMeasured, StageStarted, TimingSampled
from cudal1_core.referee.ahead import Ahead
from cudal1_core.referee.channel import ChannelClosedError
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.referee.processes import Line, Process, death
from cudal1_core.referee.workers import Workers
from cudal1_core.reference import Task
from cudal1_core.verdict import Check, Verdict

BASELINE = """\
from cudal1_core.referee.variants import variant
ModelNew = variant({path!r}, {class_name!r}, {name!r})
"""
OVERALL_SECONDS = 900.0  # longest a single judgement may take before the referee itself is at fault


class Referee:
    """Judges candidates of one reference. Use as `async with Referee(options) as referee`."""

    def __init__(self, options: JudgeOptions, *, log_dir: Path | None = None) -> None:
        self.options = options
        self.workers = Workers(log_dir, read=options.expose)
        self.ahead = Ahead(self.workers, options.build_timeout_s)
        self.path: Path | None = None  # of the reference
        self.task: Task | None = None
        self.helpers: dict[str, bytes] = {}
        self.versions: dict[str, str] = {}
        self.seed = ""
        self.line: Line | None = None
        self.trusted: Process | None = None
        self.eager_ms: float | None = None
        self.ratios: dict[str, float] = {}  # of the other baselines that are known: eager's time over theirs

    async def __aenter__(self) -> Referee:
        await self.workers.start()
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
        await self.workers.start()
        self.trusted, ours = await self.workers.trusted("trusted")
        self.line = Line(ours)
        await self.line.connect()
        _, *ends = await self.workers.runner("reference-runner", walls="process")
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
            ends,
        )
        self.workers.warm_up()  # while the reference is read
        limit = self.options.build_timeout_s * 2 + self.options.timeout_s * 10
        result = await self._result(limit, lambda fact: None)
        self.task = Task.from_json(result["task"])
        self.helpers = {name: text.encode("latin-1") for name, text in result["helpers"].items()}
        self.versions = {"python": platform.python_version(), **result["versions"]}
        self.seed = result["seed"]
        self.eager_ms = float(result["eager_ms"])
        self.workers.cores = tuple(result["cores"])
        self.ahead.open(result["building"], self.helpers, self.task.device)
        return self.task

    async def judge(self, candidate_id: str, source: str | bytes, emit: Callable[[Event], None]) -> Verdict:
        """A verdict on one candidate of the opened reference, with its evidence sent to `emit` as it arises."""
        if self.path is None:
            raise RefereeError("no reference is open")
        if self.line is None:  # the trusted worker died, or broke off, on an earlier candidate
            await self.open(self.path)
        text = _bytes(source)
        if not text.strip():
            return self._complete(
                {"verdict": "rejected", "category": "no_code", "reason": "there is no code in the answer"}, ()
            )
        built = self.ahead.take(text)
        if built is not None and built.refused:
            check = Check("build", False, built.refused)
            emit(CheckFinished(candidate=candidate_id, check=check))
            return self._complete(_refused(check), built.isolation)
        more = {} if built is None else {**built.spec(), "environment": self.ahead.environment}
        files = {**self.helpers, "candidate.py": text}
        process, *ends = await self.workers.runner(candidate_id, walls="all", files=files, **more)

        def on_fact(fact: dict[str, Any]) -> None:
            if fact.get("stage") == "timing":
                self.ahead.hold()
            for event in _events(candidate_id, fact):
                emit(event)

        try:
            await self._hand_over({"do": "judge", "rules": self._rules(process)}, ends)
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
            self.ahead.go_on()
            await self.workers.end(process)
            if built is not None:
                built.packed.unlink(missing_ok=True)

    def builds_ahead(self, source: str) -> bool:
        """Whether `build_ahead` would save time of this candidate's judgement."""
        return self.ahead.worth(source)

    async def build_ahead(self, candidate_id: str, source: str, emit: Callable[[Event], None]) -> None:
        """Has a candidate's compiler do its work before it is judged, beside the judgements of others."""
        await self.ahead.build(candidate_id, _bytes(source), emit)

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

    def log_to(self, folder: Path | None) -> None:
        """Where workers from now on print; None: nowhere that anybody looks."""
        self.workers.log_dir = folder or self.workers.root

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
        files = {"candidate.py": source.encode()}
        process, *ends = await self.workers.runner(f"baseline-{name}", walls="process", files=files)
        message = {"do": "baseline", "rules": self._rules(process), "name": name}
        self.ahead.hold()
        try:
            await self._hand_over(message, ends)
            result = await self._result(OVERALL_SECONDS + self.options.timing_budget_s, lambda fact: None)
            return Timed(result["ratio"], result["half_interval"])
        except asyncio.CancelledError:
            self._hang_up()
            raise
        finally:
            self.ahead.go_on()
            await self.workers.end(process)

    def _milliseconds(self) -> dict[str, float]:
        """By baseline; empty before a reference is open."""
        if self.eager_ms is None:
            return {}
        return {"eager": self.eager_ms, **{name: self.eager_ms / ratio for name, ratio in self.ratios.items()}}

    async def _leave(self) -> None:
        """Ends the workers of the reference."""
        self.task = None
        self._hang_up()
        self.ahead.forget()
        await self.workers.end_all()

    async def close(self) -> None:
        """Ends every child and removes every temporary file."""
        await self._leave()
        await self.workers.close()

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


def _bytes(source: str | bytes) -> bytes:
    return source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source


def _refused(check: Check) -> dict[str, Any]:
    """The result of a candidate that was not even built."""
    told = {"reason": check.detail, "checks": [[check.name, check.passed, check.detail]]}
    return {"verdict": "rejected", "category": "build_failed", **told}


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
