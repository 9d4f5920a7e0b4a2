"""Is a candidate right beyond what the reference's own inputs share: their signs, their range, their structure?

Nobody asked for that, so a failure is a label and costs nothing; it warns whoever uses the code with other inputs. It
is a few calls, when all else is decided, with inputs that the reference itself took when it was qualified.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch

from cudal1_core.referee import compare
from cudal1_core.referee.checks import Checker, scalars_of
from cudal1_core.referee.drawing import BEYOND
from cudal1_core.referee.qualify import OperatorNames, Qualified

BUDGET_S = 3.0  # for all calls of the reference when it is qualified
GROSS = 0.02  # of the output's scale: a smaller error is a matter of rounding, not of another function
ROOM = 8.0  # times what is allowed within the domain, and times the reference's own error beyond it
# Operators that a wrong index ends on CUDA, with the process they run in.
_INDEXING = ("index", "gather", "scatter", "embedding", "take", "one_hot", "bincount", "histc", "nll_loss")


def usable(q: Qualified) -> tuple[str, ...]:
    """Which variations the reference takes: it neither raises nor gives anything but finite numbers."""
    if q.stateful or not q.inputs.goes_beyond or not any(leaf.dtype.is_floating_point for leaf in q.outputs):
        return ()
    if q.device != "cpu" and _indexes(q):
        return ()
    found = []
    q.truth.use(q.states[0])
    with suppress(_TimeUpError), _alarm(BUDGET_S):
        for variation in BEYOND:
            if _answer(q, variation) is not None:
                found.append(variation)
    return tuple(found)


def failure(q: Qualified, checker: Checker, variation: str, timeout: float) -> str:
    """What is wrong with a candidate's answer to such inputs; empty where nothing is. Raises FaultError."""
    answer = _answer(q, variation)
    if answer is None:
        return ""
    draw, seeds, wanted = answer
    checker.stage.put([draw])
    checker.candidate.run(
        [0], checker.stage, one_by_one=True, seeds=seeds, scalars=scalars_of(q, [draw]), timeout=timeout
    )
    for index, (got, want) in enumerate(zip(checker.candidate.output_views(0), wanted, strict=True)):
        bound = q.bounds[0][index]
        if bound is None:
            continue
        scale, found = compare.scale_of(want), compare.distance(got, want)
        limits = [
            max(ROOM * allowed, ROOM * cheap, GROSS) * scale
            for allowed, cheap in zip(bound.allowed.values(), bound.cheap.values(), strict=True)
        ]
        if all(off <= limit for off, limit in zip(found.values(), limits, strict=True)):
            continue
        exact = None if q.seeded else q.truth.exact(draw)
        if exact is not None:
            own, mine = (compare.distance(one, exact[index], exact=True) for one in (want, got))
            if mine.rms <= ROOM * own.rms:
                continue
        if not math.isfinite(found.rms):
            return "NaN or infinite where the reference is not"
        return f"error {found.rms / scale:.1e} of the output's scale" if scale else "not zero where the reference is"
    return ""


def _answer(q: Qualified, variation: str) -> tuple[Any, list[int] | None, list[torch.Tensor]] | None:
    """Inputs, seeds and the reference's output on the trusted side; None where it has no sound one."""
    draw = q.inputs.beyond(variation)
    seeds = q.seed_list(1)
    try:
        wanted = q.truth.reference(draw, seeds[0] if seeds else None)
    except _TimeUpError:
        raise
    except Exception:
        return None
    finite = all(bool(t.isfinite().all()) for t in wanted if t.dtype.is_floating_point or t.dtype.is_complex)
    return (draw, seeds, wanted) if finite else None


def _indexes(q: Qualified) -> bool:
    seen = OperatorNames()
    with seen:
        q.truth.reference(q.inputs.pool[0], 0 if q.seeded else None)
    return any(word in name for name in seen.names for word in _INDEXING)


class _TimeUpError(Exception):
    pass


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Ends what runs too long, also a loop that waits for values to converge; only for a process's main thread."""

    def ring(number: int, frame: Any) -> None:
        raise _TimeUpError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
