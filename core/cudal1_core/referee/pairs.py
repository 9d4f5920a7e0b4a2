"""How much faster? Paired blocks of calls on fresh inputs, timed from outside, every output compared.

A block of calls is released at once and timed twice: when the runner says that all calls are done, and when
all outputs lie in the trusted side's memory. Some blocks release their inputs one by one. The cost of the
protocol itself is measured with calls that return ready outputs of the same size, and subtracted.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

import psutil
import torch

from cudal1_core.referee.checks import SLOTS, Checker, scalars_of
from cudal1_core.referee.cores import on_core
from cudal1_core.referee.drawing import Draw
from cudal1_core.referee.layout import lay_out
from cudal1_core.referee.qualify import Qualified
from cudal1_core.referee.runner import Block, Runner
from cudal1_core.referee.staging import Stage
from cudal1_core.referee.timing import Estimate, estimate, held_to, saving

WIDTH = 0.01  # half interval, relative, at which measuring stops
MOST_CALLS = 256  # in a block
MOST_SMALL_CALLS = 2048  # where all their inputs and outputs take no more than SMALL bytes
SMALL = 128 << 20
LEAST_PAIRS = 7
FEWEST_PAIRS = 5  # also where the budget is spent
MOST_PAIRS = 80
LONGEST_BLOCK = 0.2  # seconds of reference work in a block, where a single call is shorter
SINGLE_SHARE = 2  # every so many pairs one is released call by call
SINGLE_CALLS = 4  # in such a pair
LEAST_SINGLES = 5
SINGLE_DOUBT = 0.1  # share of a saving that calls released by themselves may miss: their caches are colder
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
    """Seconds a call, protocol cost taken off: (reference, candidate) a pair."""

    called: list[tuple[float, float]] = field(default_factory=list)
    delivered: list[tuple[float, float]] = field(default_factory=list)
    single: list[tuple[float, float]] = field(default_factory=list)
    hidden: list[tuple[float, float]] = field(default_factory=list)  # single, launching hidden behind a busy device


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
        self.samples = Samples()
        self.state = 0
        self.copying = 0.0  # seconds a call that copying the outputs out takes
        self.null_single = 0.0  # seconds that the protocol takes of a call released by itself
        self.busy = 0.0  # seconds that the device is kept busy to hide the launching of such a call
        self.null_hidden = 0.0  # protocol and busy time together
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
        count = self._block_length()
        self.checker.attach(count)
        states = len(self.q.states) if self.checker.drop_in else 1
        self.checker.load(0)
        null_called, null_delivered = null_cost(reference, self.checker.stage, count, one_by_one=False)
        self.copying = (null_delivered - null_called) / count
        singles = min(count, SINGLE_CALLS)
        _, self.null_single = null_cost(reference, self.checker.stage, singles, one_by_one=True)
        if self.q.device != "cpu":
            _, self.null_hidden = null_cost(reference, self.checker.stage, singles, one_by_one=True, busy=self.busy)
        deadline = time.monotonic() + self.budget_s
        pairs = 0
        while True:
            if states > 1 and pairs % 3 == 0:
                self.state = self.random.randrange(states)
                self.checker.load(self.state)
            single = pairs % SINGLE_SHARE == self.random.randrange(SINGLE_SHARE) and pairs > 1
            hidden = single and self.busy > 0 and len(self.samples.hidden) < len(self.samples.single)
            mine, theirs = self._pair(count if not single else singles, single, self.busy if hidden else 0.0)
            pairs += 1
            if pairs == 1:
                continue  # the first block touches the fresh memory
            if hidden:
                self.samples.hidden.append(self._seconds(theirs, mine, 0.0, self.null_hidden)[1])
            elif single:
                self.samples.single.append(self._seconds(theirs, mine, 0.0, self.null_single)[1])
            else:
                called, delivered = self._seconds(theirs, mine, null_called, null_delivered)
                self.samples.called.append(called)
                self.samples.delivered.append(delivered)
                if self._settled(called):
                    break
            if pairs >= MOST_PAIRS or (time.monotonic() > deadline and len(self.samples.called) >= FEWEST_PAIRS):
                break
        return self._headline()

    def _settled(self, last: tuple[float, float]) -> bool:
        """Shows what is known so far; whether that is precise enough. The last pair in seconds a call."""
        count = len(self.samples.called)
        if count < 2 or (count > 8 and count % 4):
            return False
        now = estimate(self.samples.called)
        self.on_sample(now, last[0] * 1e3, last[1] * 1e3)
        enough = count >= LEAST_PAIRS and len(self.samples.single) + len(self.samples.hidden) >= LEAST_SINGLES
        return enough and now.width < WIDTH

    def _headline(self) -> Speed:
        """The blocks' figure, held to what arrival of the outputs and call by call release prove."""
        found = estimate(self.samples.called)
        claimed = saving(self.samples.called).seconds
        labels: list[str] = []
        ways = [samples for samples in (self.samples.single, self.samples.hidden) if len(samples) >= 2]
        detail = f"{found.pairs} pairs of blocks, {sum(map(len, ways))} of single calls"
        arrived = held_to(found, claimed, saving(self.samples.delivered), self.copying)
        if arrived is not found:
            detail += f"; outputs arrived later than was said, which counts ({found.speedup:.2f}x as said)"
        best = arrived
        if ways:
            # what a call saves by itself, with its launching or without, whichever is more
            proven = max(map(saving, ways), key=lambda found: found.seconds)
            single = held_to(best, claimed, proven, self.null_single, SINGLE_DOUBT)
            if single is not best:
                labels.append("batch_only")
                detail += f"; released call by call it saves less, which counts ({best.speedup:.2f}x in blocks)"
                best = single
        return Speed(best, tuple(labels), detail)

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
        return runner.run(
            range(len(draws)),
            self.checker.stage,
            one_by_one=single,
            seeds=seeds,
            scalars=scalars_of(self.q, draws),
            busy=busy,
        )

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


def null_cost(runner: Runner, stage: Stage, count: int, *, one_by_one: bool, busy: float = 0.0) -> tuple[float, float]:
    """Seconds of a whole block of the protocol alone (one by one: of a call), until called and until delivered.

    The least of several: what is taken off too little is paid by both sides and draws their ratio to 1, what is taken
    off too much could draw it anywhere.
    """
    called, delivered = [], []
    for _ in range(NULL_BLOCKS):
        blocks = runner.run(range(count), stage, one_by_one=one_by_one, busy=busy, null=True)
        called.append(median(b.called for b in blocks))
        delivered.append(median(b.delivered for b in blocks))
    return min(called), min(delivered)
