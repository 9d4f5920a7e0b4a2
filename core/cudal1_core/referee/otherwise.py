"""Times a baseline: the reference run another way, judged as a candidate is, against the reference as it stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cudal1_core.errors import UnjudgeableError
from cudal1_core.referee.checks import SLOTS, Checker, Comparison
from cudal1_core.referee.drawing import Draw
from cudal1_core.referee.judging import Rules
from cudal1_core.referee.pairs import PairTimer
from cudal1_core.referee.qualify import Qualified
from cudal1_core.referee.runner import FaultError, Runner
from cudal1_core.referee.timing import Estimate
from cudal1_core.referee.turn import cpu_turn, gpu_turn

_NEXT = "Candidates are judged all the same; only this figure is missing beside them."


class Leniently(Comparison):
    """Does not hold other random numbers, or buffers that were warmed up, against a baseline."""

    def block(
        self, candidate: Runner, reference: Runner, draws: Sequence[Draw], seeds: list[int] | None, state: int
    ) -> None:
        if self.q.seeded or self.q.stateful:
            self.sets += len(draws)
        else:
            super().block(candidate, reference, draws, seeds, state)

    def outputs(
        self, candidate: Runner, reference: Runner, slot: int, draw: Draw, seed: int | None, state: int
    ) -> None:
        if self.q.seeded or self.q.stateful:
            self.sets += 1
        else:
            super().outputs(candidate, reference, slot, draw, seed, state)


def time_baseline(
    q: Qualified, reference: Runner, runner: Runner, rules: Rules, name: str, on_wait: Callable[[bool], None]
) -> dict[str, Any]:
    """The fields of baselines.Timed. Raises UnjudgeableError where it cannot be had.

    `on_wait` is told of a wait for the device's turn.
    """
    try:
        with gpu_turn(q.device, on_wait):
            found = _timed(q, reference, runner, rules, on_wait)
    except FaultError as fault:
        if reference.amid:
            raise
        raise UnjudgeableError(
            "unsupported", f"the baseline {name} could not be timed: {fault.reason}"[:600], "", _NEXT
        ) from fault
    return {"ratio": found.speedup, "half_interval": found.width}


def _timed(q: Qualified, reference: Runner, runner: Runner, rules: Rules, on_wait: Callable[[bool], None]) -> Estimate:
    runner.freeze()
    runner.build(
        rules.build_timeout,
        path=rules.path,
        class_name="ModelNew",
        is_reference=False,
        settings=q.settings,
        device=q.device,
        mode=rules.mode,
        seed=q.build_seed,
        init=q.init,
    )
    checker = Checker(q, reference, runner, Leniently(q, "bf16"), True, rules.call_timeout + rules.build_timeout)
    checker.attach(SLOTS)
    checker.load(0)
    for first in (True, False):  # compiled in the first call, and for other places in memory in the second
        checker.one_by_one(0, [q.inputs.fresh() for _ in range(SLOTS)], first=first)
    timer = PairTimer(q, checker, rules.timing_budget_s, lambda now, reference_ms, candidate_ms: None)
    with cpu_turn(q.device, on_wait):
        return timer.measure().estimate
