"""Is the candidate right? Every check runs both sides on the same fresh inputs and compares what lies in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from cudal1_core.referee import compare
from cudal1_core.referee.drawing import Draw
from cudal1_core.referee.layout import lay_out, same_bits
from cudal1_core.referee.qualify import Qualified
from cudal1_core.referee.runner import FaultError, Runner
from cudal1_core.referee.staging import Stage
from cudal1_core.referee.truth import JITTERS

SLOTS = 4
MOST_ROUNDS = 4  # of changed inputs, where the first has left a few elements that were not turned
CERTAIN = 0.8  # share of the bound, against the reference itself, up to which no float64 run is needed
PRECISION_ROOM = {"tf32": 4.0, "fp16": 4.0, "bf16": 32.0}  # times the error of TF32 rounding


class Comparison:
    """Compares a candidate's arenas with the reference's, and remembers the worst it saw."""

    def __init__(self, q: Qualified, allow_precision: str | None) -> None:
        self.q = q
        self.allow_precision = allow_precision
        self.worst = 0.0  # largest error seen, as a share of what is allowed
        self.worst_relative = 0.0  # largest root mean square error relative to the output's scale
        self.used_precision = False
        self.near_ties = 0
        self.sets = 0

    def forms(self, got: list[Any] | None) -> None:
        """Raises FaultError where the claimed form of an output is not the reference's."""
        want_leaves, want_structure = self.q.form
        if got is None:
            if want_structure == "*" and want_leaves[0][0] == "tensor":
                return
            raise FaultError("dishonest", "an output without a form, where the reference's is no plain tensor")
        try:
            leaves, structure = got
            leaves = [list(leaf) for leaf in leaves]
        except (TypeError, ValueError) as error:
            raise FaultError("dishonest", "an output's form has no proper form itself") from error
        if structure != want_structure or len(leaves) != len(want_leaves):
            raise FaultError(
                "wrong_form", f"output is {_form_text(got)}, the reference gives {_form_text(self.q.form)}"
            )
        for number, (one, two) in enumerate(zip(leaves, want_leaves, strict=True)):
            if one[0] != two[0] or (one[0] != "value" and one != two) or (one[0] == "value" and one[1] != two[1]):
                place = f"output {number}" if len(leaves) > 1 else "the output"
                raise FaultError("wrong_form", f"{place} is {_leaf_text(one)}, the reference gives {_leaf_text(two)}")

    def block(
        self, candidate: Runner, reference: Runner, draws: Sequence[Draw], seeds: list[int] | None, state: int
    ) -> None:
        """Inputs and outputs of a whole block at once; what is in doubt is looked at call by call."""
        if not torch.equal(candidate.arenas[0].data, reference.arenas[0].data):
            for slot in range(len(draws)):
                self.inputs(candidate, reference, slot)
        doubtful: set[int] = set()
        for index, bound in enumerate(self.q.bounds[state]):
            got, want = (r.outputs.stacked(r.arenas[1], index, len(draws)) for r in (candidate, reference))
            found = compare.distances(got, want) if bound else None
            if bound is None or found is None:
                doubtful |= set() if compare.equal(got, want) else set(range(len(draws)))
                continue
            for slot, (off, scale) in enumerate(found):
                share = bound.excess(off, scale)
                if share > CERTAIN:
                    doubtful.add(slot)
                else:
                    self._remember(share, off, scale)
        for slot in sorted(doubtful):
            self.outputs(candidate, reference, slot, draws[slot], seeds[slot] if seeds else None, state)
        self.sets += len(draws) - len(doubtful)

    def _remember(self, share: float, found: compare.Distance, scale: float) -> None:
        self.worst = max(self.worst, min(share, 1.0))
        self.worst_relative = max(self.worst_relative, found.rms / scale if scale else 0.0)

    def outputs(
        self, candidate: Runner, reference: Runner, slot: int, draw: Draw, seed: int | None, state: int
    ) -> None:
        """Every output tensor of one call. Raises FaultError with wrong_result or reduced_precision."""
        self.sets += 1
        pairs = zip(candidate.output_views(slot), reference.output_views(slot), strict=True)
        for index, (got, want) in enumerate(pairs):
            bound = self.q.bounds[state][index]
            if bound is None:
                if not compare.equal(got, want):
                    self._discrete(index, got, want, draw, seed)
                continue
            scale = compare.scale_of(want)
            found = compare.distance(got, want)
            share = bound.excess(found, scale)
            if share > CERTAIN:
                found, share = self._in_doubt(index, got, found, share, bound, scale, draw, seed)
            if share > 1:
                found, share = self._near_tie(index, got, want, bound, scale, draw, seed, found, share)
            if share > 1:
                self._refuse(index, got, want, found, share, bound, scale)
            self._remember(share, found, scale)

    def scalars(self, got: list[Any] | None, want: list[Any] | None) -> None:
        """Integers, truth values and strings among the outputs; floats lie in the arena as tensors."""
        if got is None or want is None:
            return
        for one, two in zip(got[0], want[0], strict=True):
            if one[0] == "value" and one[1] not in ("float", "complex") and one != two:
                raise FaultError("wrong_result", f"an output is {one[2]}, the reference gives {two[2]}")

    def inputs(self, candidate: Runner, reference: Runner, slot: int) -> None:
        """The inputs after the call: unchanged, unless the reference changes them too."""
        pairs = zip(candidate.input_spans(slot), reference.input_spans(slot), strict=True)
        for index, (got, want) in enumerate(pairs):
            if torch.equal(got.view(torch.uint8), want.view(torch.uint8)):
                continue
            if got.dtype in compare.MANTISSA:
                bits = compare.MANTISSA[got.dtype][0]
                if compare.distance(got, want).rms <= 2.0 ** -(bits - 5) * compare.scale_of(want):
                    continue
            raise FaultError("changes_inputs", f"input {index} differs after the call from what the reference leaves")

    def buffers(self, got: dict[str, torch.Tensor], want: dict[str, torch.Tensor]) -> None:
        """State after the same calls on both sides."""
        for name, value in want.items():
            if torch.equal(got[name], value):
                continue
            close = False
            if value.dtype in compare.MANTISSA:
                bits = compare.MANTISSA[value.dtype][0]
                close = compare.distance(got[name], value).rms <= 2.0 ** -(bits - 8) * compare.scale_of(value)
            if not close:
                raise FaultError(
                    "wrong_result", f"the buffer {name} is not what the reference leaves after the same calls"
                )

    def detail(self) -> str:
        error = f"worst error {self.worst_relative:.1e} of the output's scale"
        return f"{self.sets} calls, {error}, {self.worst:.0%} of what is allowed"

    def _in_doubt(
        self,
        index: int,
        got: torch.Tensor,
        found: compare.Distance,
        share: float,
        bound: compare.Bound,
        scale: float,
        draw: Draw,
        seed: int | None,
    ) -> tuple[compare.Distance, float]:
        exact = self.q.truth.exact(draw) if not self.q.seeded and not self.q.stateful else None
        if exact is None:
            return found, bound.excess(found, scale, extra=1.0)
        truth = exact[index]
        better = compare.distance(got, truth, exact=True)
        return better, bound.excess(better, scale)

    def _unexplained(
        self,
        index: int,
        elements: torch.Tensor,
        agrees: Callable[[torch.Tensor], torch.Tensor],
        draw: Draw,
        seed: int | None,
    ) -> torch.Tensor:
        """Those of the elements, a mask, that no change in the last bits of the inputs makes of the reference's.

        A change turns a tie or does not, with about even odds, so there are more changes where few elements are left.
        """
        for number, bits in enumerate(JITTERS * MOST_ROUNDS):
            left = int(elements.sum())
            if not left or (number >= len(JITTERS) and left > _few(elements)):
                break
            elements = elements & ~agrees(self.q.truth.jittered(draw, seed, bits)[index])
        return elements

    def _discrete(self, index: int, got: torch.Tensor, want: torch.Tensor, draw: Draw, seed: int | None) -> None:
        """Integers and truth values may differ only where a last bit of the inputs already turns them."""
        mine = compare.comparable(got)
        differing = mine != compare.comparable(want)
        left = self._unexplained(index, differing, lambda other: mine == compare.comparable(other), draw, seed)
        wrong = int(left.sum())
        if wrong:
            raise FaultError(
                "wrong_result",
                f"output {index}: {wrong} of {got.numel()} elements differ, and not by a near-tie",
            )
        self.near_ties += compare.differing(got, want)

    def _near_tie(
        self,
        index: int,
        got: torch.Tensor,
        want: torch.Tensor,
        bound: compare.Bound,
        scale: float,
        draw: Draw,
        seed: int | None,
        found: compare.Distance,
        share: float,
    ) -> tuple[compare.Distance, float]:
        """Rounding operators and sorts: a few elements may sit on the other side of a tie."""
        if not math.isfinite(share) or got.dtype.is_complex:
            return found, share
        off = (got.double() - want.double()).abs()
        limit = bound.allowed.worst * scale
        far = off > limit
        if int(far.sum()) > _few(got):
            return found, share

        def agrees(other: torch.Tensor) -> torch.Tensor:
            return (got.double() - other.double()).abs() <= limit

        if bool(self._unexplained(index, far, agrees, draw, seed).any()):
            return found, share
        self.near_ties += int(far.sum())
        patched = torch.where(far, want, got)
        found = compare.distance(patched, want)
        return found, bound.excess(found, scale, extra=1.0)

    def _refuse(
        self,
        index: int,
        got: torch.Tensor,
        want: torch.Tensor,
        found: compare.Distance,
        share: float,
        bound: compare.Bound,
        scale: float,
    ) -> None:
        place = f"output {index}" if len(self.q.outputs) > 1 else "the output"
        if not math.isfinite(found.rms):
            wrong = int((~((got == want) | (got.isfinite() & want.isfinite()) | (got.isnan() & want.isnan()))).sum())
            raise FaultError(
                "wrong_result", f"{place}: {wrong} elements are NaN or infinite where the reference's are not"
            )
        relative = found.rms / scale if scale else math.inf
        text = (
            f"{place}: error {relative:.1e} of its scale, {share:.1f} times what is allowed"
            f" (the reference's own error is {bound.own.rms:.1e})"
        )
        if bound.looks_reduced(found, scale):
            if self.allow_precision and found.rms <= PRECISION_ROOM[self.allow_precision] * bound.cheap.rms * scale:
                self.used_precision = True
                return
            raise FaultError("reduced_precision", f"{text}: as large as a cheaper number format makes it")
        raise FaultError("wrong_result", text)


def _few(output: torch.Tensor) -> int:
    """Elements of an output that near-ties could reasonably turn."""
    return max(8, output.numel() // 1000)


def _leaf_text(leaf: Any) -> str:
    if leaf[0] == "tensor":
        return f"{str(leaf[1]).removeprefix('torch.')}{leaf[2]} on {leaf[3]}"[:200]
    return f"{leaf[1]}"[:200]


def _form_text(form: Any) -> str:
    try:
        leaves, structure = form
        return f"{structure} with {len(leaves)} part(s): {', '.join(map(_leaf_text, leaves[:4]))}"[:300]
    except (TypeError, ValueError, IndexError):
        return "without proper form"


class Checker:
    """Runs the checks on one built candidate, beside the reference's runner."""

    def __init__(
        self,
        q: Qualified,
        reference: Runner,
        candidate: Runner,
        comparison: Comparison,
        drop_in: bool,
        first_call_timeout: float,
    ) -> None:
        self.q, self.reference, self.candidate = q, reference, candidate
        self.comparison = comparison
        self.drop_in = drop_in
        self.reuses_output = False  # so its outputs must be in our hands before the next call
        self.first_call_timeout = first_call_timeout
        self.slots = list(range(SLOTS))
        self.stage = Stage(lay_out((), 0), q.device)

    def attach(self, count: int, *, spoil: bool = False) -> None:
        """Fresh arenas on both sides; `spoil`: memory that the candidate never wrote is not zero."""
        self.stage = Stage(lay_out(self.q.inputs.tree.tensors, count), self.q.device)
        for runner in (self.candidate, self.reference):
            state = self.q.state if self._loads(runner) else {}
            runner.attach(self.q.inputs.tree, self.q.outputs, state, count, spoil=spoil and runner is self.candidate)

    def load(self, state: int) -> None:
        """The same weights into both sides, and into the truth."""
        for runner in (self.candidate, self.reference):
            if self._loads(runner) and self.q.state:
                runner.load_state(self.q.states[state])
        self.q.truth.use(self.q.states[state])

    def _loads(self, runner: Runner) -> bool:
        return runner is self.reference or self.drop_in

    def one_by_one(self, state: int, draws: list[Draw], *, first: bool = False, **options: bool) -> None:
        """Both sides, a call at a time, outputs copied straight after each call."""
        seeds = self.q.seed_list(len(draws))
        slots = self.slots[: len(draws)]
        scalars = scalars_of(self.q, draws)
        self.stage.put(draws)
        got = self.candidate.run(
            slots,
            self.stage,
            one_by_one=True,
            seeds=seeds,
            scalars=scalars,
            timeout=self.first_call_timeout if first else None,
            **options,
        )
        options.pop("delay", None)
        want = self.reference.run(
            slots,
            self.stage,
            one_by_one=True,
            seeds=seeds,
            scalars=scalars,
            **options,
        )
        self.candidate.confirm(got)
        for slot, mine, theirs in zip(slots, got, want, strict=True):
            self.comparison.forms(mine.forms[0])
            self.comparison.inputs(self.candidate, self.reference, slot)
            seed = seeds[slot] if seeds else None
            self.comparison.outputs(self.candidate, self.reference, slot, draws[slot], seed, state)
            self.comparison.scalars(mine.forms[0], theirs.forms[0])

    def outputs_stay(self, count: int) -> None:
        """The outputs that the last `count` kept calls gave are, bit for bit, still what they were."""
        slots = self.slots[:count]
        before = [[view.clone() for view in self.candidate.output_views(slot)] for slot in slots]
        self.candidate.deliver_again(slots)
        for slot, earlier in zip(slots, before, strict=True):
            if not all(map(same_bits, self.candidate.output_views(slot), earlier)):
                raise FaultError("reuses_output", "an earlier output was changed by a later call")


def scalars_of(q: Qualified, draws: Sequence[Draw]) -> dict[int, list[Any]] | None:
    """Plain values among the inputs, where they are not the same in every draw."""
    if not q.inputs.scalars_vary:
        return None
    return {slot: list(draw.tree.leaves) for slot, draw in enumerate(draws)}
