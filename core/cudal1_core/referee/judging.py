"""One candidate's judgement on the trusted side: build, correctness, what ran, timing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from cudal1_core.errors import UnjudgeableError
from cudal1_core.referee import beyond, conditions, paper
from cudal1_core.referee.checks import SLOTS, Checker, Comparison
from cudal1_core.referee.pairs import PairTimer, Samples, Speed
from cudal1_core.referee.qualify import Qualified
from cudal1_core.referee.quiet import DeviceBusyError
from cudal1_core.referee.roofline import ABOVE, roofline_of
from cudal1_core.referee.runner import FaultError, Runner
from cudal1_core.referee.timing import Estimate, estimate
from cudal1_core.referee.turn import cpu_turn, gpu_turn, gpu_uuid
from cudal1_core.verdict import Check, round_towards_one

BEYOND_SECONDS = 5.0  # longest a call may take whose failure is only a label
ENDING_SECONDS = 5.0  # for a killed candidate's work to leave the device


@dataclass(frozen=True, slots=True)
class Rules:
    """What may differ from one judgement to the next."""

    path: str  # of the candidate, as its runner sees it
    mode: str
    call_timeout: float
    build_timeout: float
    timing_budget_s: float
    timing: str
    allow_precision: str | None
    allow_output_reuse: bool


@dataclass
class Judging:
    """Goes through the stages; `doing` is the check that a fault belongs to."""

    q: Qualified
    reference: Runner
    candidate: Runner
    rules: Rules
    tell: Callable[..., None]
    checks: list[Check] = field(default_factory=list)
    labels: set[str] = field(default_factory=set)
    doing: str = "build"

    def verdict(self) -> dict[str, Any]:
        """The fields of a Verdict that this side knows."""
        try:
            return {**self._judge(), **self._evidence()}
        except FaultError as fault:
            if self.reference.amid:
                raise UnjudgeableError(
                    "reference_failed",
                    f"the reference failed while a candidate was judged: {fault.reason}",
                    "Its own process was at work then, so this is not the candidate's fault.",
                    "Judge again; if it stays, look for inputs of get_inputs() with which the reference fails.",
                ) from fault
            return self._rejected(fault)
        except DeviceBusyError as busy:
            return self._busy(busy)

    def _rejected(self, fault: FaultError) -> dict[str, Any]:
        self._note(self.doing, False, fault.reason)
        return {"verdict": "rejected", "category": fault.category, "reason": fault.reason, **self._evidence()}

    def _busy(self, busy: DeviceBusyError) -> dict[str, Any]:
        """Whose work is it? The candidate's, if the device is quiet once its processes are gone."""
        self.candidate.end()
        if self.q.canary.quiet(ENDING_SECONDS):
            return self._rejected(FaultError("dishonest", "its work was still running on the GPU after it was done"))
        raise UnjudgeableError(
            "unsupported",
            "another program keeps the GPU busy, so nothing can be timed on it now",
            "It was quiet when the reference was read. What runs there now is not the candidate's.",
            "Wait until the GPU is free (nvidia-smi shows who uses it), then judge again.",
        ) from busy

    def _judge(self) -> dict[str, Any]:
        self.labels |= set(self.q.labels)
        self.tell(stage="building")
        drop_in = self._build()
        with gpu_turn(self.q.device, self._on_wait):
            return self._on_device(drop_in)

    def _on_device(self, drop_in: bool) -> dict[str, Any]:
        self.tell(stage="checking")
        comparison = Comparison(self.q, self.rules.allow_precision)
        checker = Checker(
            self.q,
            self.reference,
            self.candidate,
            comparison,
            drop_in,
            self.rules.call_timeout + self.rules.build_timeout,
        )
        self._correctness(checker)
        self.doing = "timed outputs"
        speed, samples = self._timed(checker)
        self.labels |= set(speed.labels)
        self._note("timed outputs", True, comparison.detail())
        found = speed.estimate
        speedup: float | None = round_towards_one(found.proven)
        if self.rules.timing == "paper":
            speedup = self._paper_score(speed, samples)
        else:
            self._note("timing", True, speed.detail)
        limits = self._roofline(found.candidate_ms / 1e3)
        win = self._observe()  # last of what counts, since a profiler slows the process from then on
        self._beyond(checker)
        if comparison.used_precision:
            self.labels.add("reduced_precision")
            win = "reduced_precision"
        if "constant_output" in self.labels:
            win = "constant"
        return {
            "verdict": "accepted",
            "speedup": speedup,
            "speedup_interval": [found.low, found.high],
            "reference_ms": found.reference_ms,
            "candidate_ms": found.candidate_ms,
            "win": win,
            "roofline": limits,
        }

    def _paper_score(self, speed: Speed, samples: Samples) -> float | None:
        """The paper's figure from the same pairs, held to what was proven; None where the buckets vary too much."""
        held = speed.estimate.speedup / estimate(samples.called).speedup
        score = paper.score([held * reference / candidate for reference, candidate in samples.called])
        told = f"{speed.detail}; means of 7 buckets vary by {score.variance:.4f}"
        if score.discarded:
            self.labels.add("unsettled")
            told += f", more than {paper.MOST_VARIANCE}, so the measurement is discarded"
        self._note("timing", not score.discarded, told)
        return score.value

    def _roofline(self, seconds: float) -> dict[str, Any] | None:
        """How near the candidate's time comes to what the device allows; None where that cannot be counted."""
        try:
            self.q.roofline = self.q.roofline or roofline_of(self.q)
            limits = self.q.roofline.share(seconds)
        except Exception as error:
            self._note("roofline", True, f"cannot be counted for this reference: {type(error).__name__}: {error}"[:300])
            return None
        too_good = limits["memory"] > ABOVE
        told = f"{limits['share']:.0%} of what {limits['bound']} allows: {limits['least_ms']:.3g} ms at least"
        if too_good:
            self.labels.add("above_roofline")
            told += f"; {limits['bytes']} bytes cannot be moved in that time"
        elif limits["compute"] > ABOVE:
            self.labels.add("fewer_operations")
            told += f"; too quick for the reference's {limits['operations']} operations, so it does fewer"
        self._note("roofline", not too_good, told)
        return limits

    def _timed(self, checker: Checker) -> tuple[Speed, Samples]:
        """Times the pair and tells every sample, with what the machine did meanwhile."""
        gpu = gpu_uuid(self.q.device)
        before = conditions.read(gpu)
        timer = PairTimer(self.q, checker, self.rules.timing_budget_s, self._on_sample)
        timer.patient = self.rules.timing == "paper"
        with cpu_turn(self.q.device, self._on_wait):
            self.tell(stage="timing")
            speed = timer.measure()
        seeds = {"build": f"{self.q.build_seed:016x}", "inputs": f"{self.q.inputs.seed:016x}"}
        after = conditions.read(gpu)
        if conditions.throttled(before, after):
            self.labels.add("throttled")
        self.tell(measured={"samples": asdict(timer.samples), "seeds": seeds, "before": before, "after": after})
        return speed, timer.samples

    def _build(self) -> bool:
        """Whether the candidate's state has the reference's names, types and shapes."""
        self.candidate.freeze()
        claimed = self.candidate.build(
            self.rules.build_timeout, path=self.rules.path, device=self.q.device, **self.q.building(self.rules.mode)
        )
        want = {name: (str(leaf.dtype), leaf.shape) for name, leaf in self.q.state.items()}
        drop_in = {name: (dtype, shape) for name, dtype, shape in claimed} == want
        if not drop_in:
            self.labels.add("not_drop_in")
        how = "loads the reference's weights" if drop_in else "its weights have other names or shapes"
        self._note("build", True, f"imports and constructs; {how}")
        return drop_in

    def _correctness(self, checker: Checker) -> None:
        source = self.q.inputs
        checker.attach(SLOTS, spoil=True)
        self.doing = "weights as built"
        checker.load(0)
        real, fresh = source.real(), source.fresh()
        draws = [real, fresh, source.nudged(fresh), real]
        checker.one_by_one(0, draws, first=True, keep=True)
        self._note(self.doing, True, checker.comparison.detail())
        self._outputs_stay(checker, len(draws))
        self.doing = "same tensors, other values"
        for draw in (fresh, source.nudged(fresh), source.fresh()):
            checker.one_by_one(0, [draw])
        self._note(self.doing, True, "three calls in a row on the same tensor objects with new content")
        if checker.drop_in and len(self.q.states) > 1:
            self._other_weights(checker)
        if self.q.device != "cpu":
            self.doing = "stream order"
            checker.load(0)
            checker.one_by_one(0, [source.fresh() for _ in range(2)], delay=True)
            self._note(self.doing, True, "outputs are ready in stream order behind a delay")
        if checker.drop_in and self.q.state:
            self.doing = "buffers"
            checker.load(0)
            checker.one_by_one(0, [source.fresh() for _ in range(2)])
            checker.comparison.buffers(self.candidate.save_state(), self.reference.save_state())
            self._note(self.doing, True, "parameters and buffers end as the reference's do")
        self._gradients(checker)

    def _outputs_stay(self, checker: Checker, count: int) -> None:
        self.doing = "outputs stay"
        try:
            checker.outputs_stay(count)
        except FaultError as fault:
            if fault.category != "reuses_output" or not self.rules.allow_output_reuse:
                raise
            checker.reuses_output = True
            self.labels.add("output_reuse")
            self._note(self.doing, True, "a later call changes an earlier output, which is allowed: timed call by call")
        else:
            self._note(self.doing, True, "earlier outputs are unchanged after later calls")

    def _other_weights(self, checker: Checker) -> None:
        self.doing = "other weights"
        before = checker.comparison.sets
        for state in range(1, len(self.q.states)):
            checker.load(state)
            draws = [self.q.inputs.fresh() for _ in range(2)]
            try:
                checker.one_by_one(state, draws)
            except FaultError as fault:
                if fault.category == "wrong_result":
                    raise FaultError(
                        "weights_baked_in", f"right with the weights as built only: {fault.reason}"
                    ) from fault
                raise
        calls = checker.comparison.sets - before
        self._note(self.doing, True, f"{calls} calls with {len(self.q.states) - 1} sets of changed weights")

    def _gradients(self, checker: Checker) -> None:
        """One call with gradients on: failing it is a label, not a rejection."""
        self.doing = "gradients"
        checker.load(0)
        try:
            checker.one_by_one(0, [self.q.inputs.fresh()], grad=True)
            self._note(self.doing, True, "the same answer with gradients enabled")
        except FaultError as fault:
            if fault.category == "crashed" and "process ended" in fault.reason:
                raise
            self.labels.add("inference_only")
            self._note(self.doing, True, f"inference only: {fault.reason[:200]}")

    def _observe(self) -> str:
        self.doing = "profile"
        seeds = self.q.seed_list(1)
        claim = self.candidate.observe(0, seeds[0] if seeds else None)
        win = claim.get("win")
        if win not in ("kernel", "graph", "compiled", "library"):
            win = "torch_level"
        if claim.get("authored") is not True:
            self.labels.add("no_authored_kernel")
        return str(win)

    def _beyond(self, checker: Checker) -> None:
        """Wrong, slow or broken outside of the reference's own domain is a label, whatever it is."""
        self.doing = "input domain"
        wrong = ""
        try:
            checker.load(0)
            for variation in self.q.beyond:
                wrong = beyond.failure(self.q, checker, variation, min(self.rules.call_timeout, BEYOND_SECONDS))
                if wrong:
                    wrong = f"with {variation}: {wrong}"
                    break
        except FaultError as fault:
            wrong = fault.reason[:200]
        except DeviceBusyError:
            wrong = "its work does not end"
            self.candidate.end()
            self.q.canary.quiet(ENDING_SECONDS)
        if wrong:
            self.labels.add("input_domain")
        tried = ", ".join(self.q.beyond) or "nothing: the reference takes no other inputs"
        self._note(self.doing, True, f"right within the reference's own domain only: {wrong}" if wrong else tried)

    def _on_wait(self, waits: bool) -> None:
        self.tell(waits=waits)

    def _on_sample(self, now: Estimate, reference_ms: float, candidate_ms: float) -> None:
        self.tell(timing=[reference_ms, candidate_ms, now.speedup, now.low, now.high, now.pairs])

    def _note(self, name: str, passed: bool, detail: str) -> None:
        self.checks.append(Check(name, passed, detail))
        self.tell(check=[name, passed, detail])

    def _evidence(self) -> dict[str, Any]:
        return {"checks": [[c.name, c.passed, c.detail] for c in self.checks], "labels": sorted(self.labels)}
