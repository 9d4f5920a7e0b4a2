"""How much faster? Paired blocks of calls on fresh inputs, timed from outside, every output compared.

A block of calls is released at once and timed until the runner has been stopped with its outputs in memory. Where
outputs are copied it is timed twice: when the runner says that all calls are done, and when all outputs lie in the
trusted side's memory. Every second pair releases its inputs one by one. The cost of the protocol itself is measured
with calls that return ready outputs of the same size, and subtracted.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from statistics import median

import psutil
import torch

from cudal1_core.referee.checks import SLOTS, Checker, scalars_of
from cudal1_core.referee.cores import on_core
from cudal1_core.referee.crowding import Crowding
from cudal1_core.referee.drawing import Draw
from cudal1_core.referee.layout import lay_out
from cudal1_core.referee.qualify import Qualified
from cudal1_core.referee.runner import Block, Runner
from cudal1_core.referee.staging import Stage
from cudal1_core.referee.timing import Estimate, Saving, between_processes, estimate, held_to, hidden, saving

WIDTH = 0.01  # half interval, relative, at which measuring stops
MOST_CALLS = 256  # in a block
MOST_SMALL_CALLS = 2048  # where all their inputs and outputs take no more than SMALL bytes
SMALL = 128 << 20
LEAST_PAIRS = 7
FEWEST_PAIRS = 5  # also where the budget is spent
MOST_PAIRS = 80
LONGEST_BLOCK = 0.2  # seconds of reference work in a block, where a single call is shorter
PATIENCE = 3  # times the budget that may be spent while the figure is rough, or open whether it is above 1 at all
ROUGH = 0.1  # half interval, relative
PLENTY = 2.0  # speedup from which on a rough figure is worth no more time
CLOSE = 1.05  # speedup below which neither is worth the time
SINGLE_CALLS = 4  # in a pair whose calls are released by themselves
MOST_SINGLES = 64  # in such a pair on the CPU
LEAST_SINGLES = 5
FEWEST_SINGLES = 3  # also where the budget is spent
SINGLE_DOUBT = 0.1  # share of a saving that calls released by themselves may miss: their caches are colder
SINGLE_NOISE = 50e-6  # seconds by which the time of such a call may be unsure
OVERHEAD_SLACK = 0.03  # share of what measuring costs by which two processes may differ
WRITING = 0.5  # of the time that copying outputs takes: nobody makes them quicker than they can be written
WAKING = 0.0003  # seconds for a runner to wake up, take its inputs and begin to launch
NULL_BLOCKS = 5
ALONE_BLOCKS = 4


@dataclass(frozen=True, slots=True)
class Speed:
    """The figure that counts and where it came from."""

    estimate: Estimate
    labels: tuple[str, ...]
    detail: str


@dataclass
class Samples:
    """Seconds a call: (reference, candidate) a pair. The protocol's cost is taken off, except of single calls."""

    called: list[tuple[float, float]] = field(default_factory=list)
    delivered: list[tuple[float, float]] = field(default_factory=list)
    single: list[tuple[float, float]] = field(default_factory=list)
    hidden: list[tuple[float, float]] = field(default_factory=list)  # single, launching hidden behind a busy device


def crowded(speed: Speed) -> Speed:
    """Other programs had the processor: where that leaves the figure rough, the lower end of its interval counts."""
    found, labels = speed.estimate, (*speed.labels, "foreign_load")
    if found.speedup <= 1 or found.width < ROUGH:
        return replace(speed, labels=labels)
    least = max(1.0, found.low)
    held = replace(found, speedup=least, candidate_ms=found.reference_ms / least)
    detail = f"{speed.detail}; other programs had the processor, so of {found.speedup:.2f}x the lower end counts"
    return Speed(held, labels, detail)


class PairTimer:
    """Times one candidate against the reference's runner; both are attached anew for the block's length."""

    def __init__(
        self,
        q: Qualified,
        checker: Checker,
        budget_s: float,
        on_sample: Callable[[Estimate, float, float], None],
    ) -> None:
        self.q = q
        self.checker = checker
        self.budget_s = budget_s
        self.on_sample = on_sample
        self.patient = False  # spends the whole budget, however soon the figure settles
        self.samples = Samples()
        self.state = 0
        self.copied = False  # outputs are copied rather than read where they are
        self.copying = 0.0  # seconds a call that copying the outputs out takes
        self.null_single = 0.0  # seconds that the protocol takes of a call released by itself
        self.busy = 0.0  # seconds that the device is kept busy to hide the launching of such a call
        self.spent = 0.0  # seconds of the reference's blocks
        self.random = random.Random(secrets.randbits(64))

    def measure(self) -> Speed:
        with self._pinned():
            return self._measure()

    @contextmanager
    def _pinned(self) -> Iterator[None]:
        """Both runners launch from one core meanwhile, and this side stays on another."""
        cores = self.q.cores
        for runner in (self.checker.candidate, self.checker.reference):
            runner.pin(cores.launching)
        try:
            with on_core(cores.trusted):
                yield
        finally:
            self.checker.reference.pin(None)

    def _measure(self) -> Speed:
        reference = self.checker.reference
        self.checker.attach(SLOTS)
        self.checker.load(0)
        count = 1 if self.checker.reuses_output else self._block_length()
        self.checker.attach(count)
        states = len(self.q.states) if self.checker.drop_in else 1
        self.checker.load(0)
        null_called, null_delivered = null_cost(reference, self.checker.stage, count, one_by_one=False)
        self.copying = (null_delivered - null_called) / count
        singles = min(count, self._singles(count))
        _, self.null_single = null_cost(reference, self.checker.stage, singles, one_by_one=True)
        self._pair(count, False, 0.0)  # the first block touches the fresh memory
        begin = time.monotonic()
        crowding = Crowding(reference, (reference, self.checker.candidate)) if self.q.device == "cpu" else None
        order: list[bool] = []
        while not self._enough(time.monotonic() - begin):
            if states > 1 and self.random.random() < 1 / 3:
                self.state = self.random.randrange(states)
                self.checker.load(self.state)
            if not order:
                order = self.random.sample([False, True], 2)
            single = order.pop()
            hide = single and self.busy > 0 and len(self.samples.hidden) < len(self.samples.single)
            mine, theirs = self._pair(singles if single else count, single, self.busy if hide else 0.0)
            if hide:
                self.samples.hidden.append(self._seconds(theirs, mine, 0.0, 0.0)[1])
            elif single:
                self.samples.single.append(self._seconds(theirs, mine, 0.0, 0.0)[1])
            else:
                called, delivered = self._seconds(theirs, mine, null_called, null_delivered)
                self.samples.called.append(called)
                self.samples.delivered.append(delivered)
                self.copied = mine[0].sampled is not None
                self._show(called)
        speed = self._headline()
        if crowding is not None:
            speed = replace(speed, estimate=between_processes(speed.estimate))
            if crowding.found(self.spent):
                speed = crowded(speed)
        return speed

    def _singles(self, count: int) -> int:
        """Calls in a pair of calls released by themselves, where a block has so many."""
        if self.q.device != "cpu":
            return SINGLE_CALLS
        return max(SINGLE_CALLS, min(MOST_SINGLES, count // 4))

    def _enough(self, spent: float) -> bool:
        """Whether what is known after `spent` seconds is precise enough, or there is no more time."""
        blocks, singles = len(self.samples.called), len(self.samples.single) + len(self.samples.hidden)
        if self.patient:
            return spent >= self.budget_s and blocks >= LEAST_PAIRS and singles >= FEWEST_SINGLES
        if blocks + singles >= MOST_PAIRS:
            return True
        if blocks < FEWEST_PAIRS or singles < FEWEST_SINGLES:
            return False
        if spent >= self.budget_s:
            found = self._headline().estimate
            settled = found.low > PLENTY or (found.width < ROUGH and not found.low <= 1 <= found.high)
            return settled or found.speedup < CLOSE or spent >= PATIENCE * self.budget_s
        looked = blocks <= 8 or blocks % 4 == 0
        return looked and blocks >= LEAST_PAIRS and singles >= LEAST_SINGLES and self._width() < WIDTH

    def _width(self) -> float:
        return estimate(self.samples.called).width

    def _show(self, last: tuple[float, float]) -> None:
        """What is known so far, and the last pair in seconds a call."""
        count = len(self.samples.called)
        if count >= 2 and (count <= 8 or (count % 4 == 0 and count <= MOST_PAIRS)):
            self.on_sample(estimate(self.samples.called), last[0] * 1e3, last[1] * 1e3)

    def _headline(self) -> Speed:
        """The blocks' figure, held to what arrival of the outputs and call by call release prove."""
        found = estimate(self.samples.called)
        claimed = saving(self.samples.called).seconds
        labels: list[str] = []
        ways = [samples for samples in (self.samples.single, self.samples.hidden) if len(samples) >= 2]
        detail = f"{found.pairs} pairs of blocks, {sum(map(len, ways))} of single calls"
        best = found
        if self.copied:
            best = self._held_to_arrival(found, claimed)
            if best is not found:
                detail += f"; outputs arrived later than was said, which counts ({found.speedup:.2f}x as said)"
        if ways:
            # what a call saves by itself, with its launching or without, whichever is more
            proven = max(map(saving, ways), key=lambda found: found.seconds)
            slack = SINGLE_DOUBT * claimed + OVERHEAD_SLACK * self.null_single
            single = held_to(best, claimed, proven, slack, SINGLE_NOISE)
            if single is not best:
                labels.append("batch_only")
                detail += f"; released call by call it saves less, which counts ({best.speedup:.2f}x in blocks)"
                best = single
        return Speed(best, tuple(labels), detail)

    def _held_to_arrival(self, found: Estimate, claimed: float) -> Estimate:
        """Work done while outputs were to be copied counts; and no claim is quicker than writing them."""
        proven = hidden(self.samples.called, self.samples.delivered)
        arrived = held_to(found, claimed, proven, OVERHEAD_SLACK * self.copying)
        most = found.reference_ms / 1e3 - WRITING * self.copying
        return held_to(arrived, claimed, Saving(most, most, most))

    def _pair(self, count: int, single: bool, busy: float) -> tuple[list[Block], list[Block]]:
        """One block for each side, on the same inputs, in random order; (candidate, reference)."""
        draws = self.checker.stage.fill(self.q.inputs, count)
        seeds = self.q.seed_list(count)
        order = [self.checker.candidate, self.checker.reference]
        self.random.shuffle(order)
        blocks = {}
        for runner in order:
            blocks[id(runner)] = self._block(runner, draws, seeds, single, busy)
        candidate, reference = self.checker.candidate, self.checker.reference
        mine, theirs = blocks[id(candidate)], blocks[id(reference)]
        self.spent += sum(block.delivered for block in theirs)
        candidate.confirm(mine)
        for block, other in zip(mine, theirs, strict=True):
            for form, want in zip(block.forms, other.forms, strict=True):
                self.checker.comparison.forms(form)
                self.checker.comparison.scalars(form, want)
        self.checker.comparison.block(candidate, reference, draws, seeds, self.state)
        return mine, theirs

    def _block(
        self, runner: Runner, draws: Sequence[Draw], seeds: list[int] | None, single: bool, busy: float = 0.0
    ) -> list[Block]:
        slots, stage, scalars = range(len(draws)), self.checker.stage, scalars_of(self.q, draws)
        if single:
            return runner.one_at_a_time(slots, stage, seeds=seeds, scalars=scalars, busy=busy)
        return runner.run(slots, stage, one_by_one=False, seeds=seeds, scalars=scalars)

    def _seconds(
        self, reference: list[Block], candidate: list[Block], null_called: float, null_delivered: float
    ) -> tuple[tuple[float, float], tuple[float, float]]:
        def each(blocks: list[Block]) -> tuple[float, float]:
            called = median(max(b.called - null_called, b.called / 20) / b.calls for b in blocks)
            delivered = median(max(b.delivered - null_delivered, b.delivered / 20) / b.calls for b in blocks)
            return called, delivered

        mine, theirs = each(candidate), each(reference)
        return (theirs[0], mine[0]), (theirs[1], mine[1])

    def _block_length(self) -> int:
        """Calls a block: long against the protocol, short against patience, and within memory."""
        times = []
        for runner in (self.checker.candidate, self.checker.reference):
            draws = self.checker.stage.fill(self.q.inputs, SLOTS)
            blocks = [self._block(runner, draws, self.q.seed_list(SLOTS), False)[0] for _ in range(4)]
            times.append(min(b.called for b in blocks[1:]) / SLOTS)
        if self.q.device != "cpu":
            self.busy = WAKING + times[1]
        reference = self.checker.reference
        return block_length(self.q.device, min(times), times[1], reference.inputs.stride + reference.outputs.stride)


def block_length(device: str, faster: float, reference: float, nbytes: int) -> int:
    """Calls a block: long against the protocol, short against patience, and within memory.

    Times in seconds a call; `nbytes` is what the inputs and outputs of one call take.
    """
    target = 0.02 if device == "cpu" else 0.01
    wanted = max(1, round(target / max(faster, 1e-6)))
    patient = max(1, int(LONGEST_BLOCK / max(reference, 1e-6)))
    most = max(MOST_CALLS, min(MOST_SMALL_CALLS, SMALL // nbytes))
    return max(1, min(wanted, patient, most, calls_in_memory(device, nbytes)))


def calls_in_memory(device: str, nbytes: int) -> int:
    """How many sets of inputs and outputs of `nbytes` bytes an arena may hold."""
    if device == "cpu":
        memory = min(256 << 20, psutil.virtual_memory().available // 8)  # drawing more takes longer than the calls
    else:
        memory = min(16 << 30, torch.cuda.mem_get_info()[0] // 10)
    return max(1, memory // max(nbytes, 1))


def time_alone(q: Qualified, runner: Runner) -> float:
    """Seconds a call of the reference by itself, before any candidate exists; protocol cost taken off."""

    def block(stage: Stage, count: int) -> Block:
        draws = stage.fill(q.inputs, count)
        return runner.run(
            range(count),
            stage,
            one_by_one=False,
            seeds=q.seed_list(count),
            scalars=scalars_of(q, draws),
            timeout=runner.call_timeout * 4,
        )[0]

    def attach(count: int) -> Stage:
        runner.attach(q.inputs.tree, q.outputs, q.state, count)
        return Stage(lay_out(q.inputs.tree.tensors, count), q.device)

    runner.pin(q.cores.launching)
    stage = attach(1)
    null_cost(runner, stage, 1, one_by_one=False)
    once = min(block(stage, 1).called for _ in range(2))
    count = block_length(q.device, once, once, runner.inputs.stride + runner.outputs.stride)
    stage = attach(count)
    null = null_cost(runner, stage, count, one_by_one=False)[0]
    blocks = [block(stage, count) for _ in range(ALONE_BLOCKS)][1:]
    return median(max(b.called - null, b.called / 20) / b.calls for b in blocks)


def null_cost(runner: Runner, stage: Stage, count: int, *, one_by_one: bool) -> tuple[float, float]:
    """Seconds of a whole block of the protocol alone (one by one: of a call), until called and until delivered.

    The least of several: what is taken off too little is paid by both sides and draws their ratio to 1, what is taken
    off too much could draw it anywhere.
    """
    called, delivered = [], []
    for _ in range(NULL_BLOCKS):
        if one_by_one:
            blocks = runner.one_at_a_time(range(count), stage, null=True)
        else:
            blocks = runner.run(range(count), stage, one_by_one=False, null=True)
        called.append(median(b.called for b in blocks))
        delivered.append(median(b.delivered for b in blocks))
    return min(called), min(delivered)
