"""Before any candidate: what the reference is, whether it can be judged, and how strictly.

Tries the reference against itself (twice, in another process, on poisoned memory) and impostors against the
task: an impostor that passes makes the task degenerate, which is a label and a warning, not a refusal.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cudal1_core.errors import UnjudgeableError
from cudal1_core.referee import compare, flags, loading
from cudal1_core.referee.compare import Bound
from cudal1_core.referee.cores import Cores
from cudal1_core.referee.drawing import Draw, InputSource
from cudal1_core.referee.layout import Leaf, form_of, leaf_of, leaves_of, tensors_of
from cudal1_core.referee.quiet import Canary
from cudal1_core.referee.truth import FAR, Truth
from cudal1_core.referee.weights import perturb
from cudal1_core.verdict import Check

if TYPE_CHECKING:
    from cudal1_core.referee.roofline import Roofline

SCALAR_OUTPUTS = (bool, int, float, complex, type(None))


@dataclass
class Qualified:
    """A reference that can be judged, with everything a verdict needs to know of it."""

    path: Path
    class_name: str
    model: Any
    device: str
    init: tuple[tuple[Any, ...], dict[str, Any]]
    build_seed: int
    settings: dict[str, Any]
    inputs: InputSource
    truth: Truth
    seeded: bool  # the forward draws random numbers, so both sides are seeded before each call
    form: list[Any]  # what form_of says of the output
    outputs: tuple[Leaf, ...]  # contiguous layout of the output tensors
    state: dict[str, Leaf]
    states: list[dict[str, torch.Tensor]]  # as built, then with other weights
    canary: Canary
    cores: Cores  # set aside for what is timed
    text: str = ""  # the reference's source
    stateful: bool = False  # its buffers change with each call, so that an answer depends on the calls before
    tf32: bool = False  # the reference's settings give TF32 to operators it uses, so TF32 is its own precision
    roofline: Roofline | None = None  # counted when the first candidate has been timed
    beyond: tuple[str, ...] = ()  # variations of inputs outside of its own domain that the reference takes
    bounds: list[list[Bound | None]] = field(default_factory=list)  # by state, then by output tensor
    labels: list[str] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    def building(self, mode: str) -> dict[str, Any]:
        """What a runner must know to build a candidate, but for the file and the device."""
        return {
            "class_name": "ModelNew",
            "is_reference": False,
            "settings": self.settings,
            "mode": mode,
            "seed": self.build_seed,
            "init": self.init,
        }

    def seed_list(self, count: int) -> list[int] | None:
        return [secrets.randbits(62) for _ in range(count)] if self.seeded else None


def call(qualified_model: Any, draw: Draw, path: Path, seed: int | None = None) -> Any:
    """One call of the reference on the trusted side; its errors are the reference's own."""
    args, kwargs = draw.build()
    if seed is not None:
        torch.manual_seed(seed)
    try:
        with torch.no_grad():
            return qualified_model(*args, **kwargs)
    except Exception as error:
        raise UnjudgeableError(
            "reference_failed",
            f"the reference's forward fails on its own inputs: {loading.error_line(error, str(path))}",
            f"It was called with {', '.join(leaf.text() for leaf in draw.tree.tensors) or 'no tensors'}.",
            "Make forward accept what get_inputs() returns, then judge again.",
        ) from error


def examine(q: Qualified) -> None:
    """Fills in form, determinism, bounds and labels. Raises UnjudgeableError."""
    draw = q.inputs.pool[0]
    _determinism(q, draw)
    q.bounds = [_calibrate(q, state) for state in q.states]
    q.checks.append(
        Check(
            "float64 truth",
            not q.truth.why_not,
            q.truth.why_not or "the reference runs in float64 and agrees with itself",
        )
    )
    _impostors(q)


def output_form(value: Any, path: Path, device: str) -> tuple[list[Any], tuple[Leaf, ...]]:
    """Form and tensor layout of the reference's output; raises where it cannot be compared."""
    leaves, tensors = leaves_of(value), tensors_of(value, device)
    for leaf in leaves:
        if not isinstance(leaf, (torch.Tensor, *SCALAR_OUTPUTS)):
            raise UnjudgeableError(
                "unsupported",
                f"{path}: forward returns a {type(leaf).__name__}, which cannot be compared by error",
                "Outputs may be tensors, numbers and None, in tuples, lists and dicts.",
                "Return tensors from forward.",
            )
    for tensor in tensors:
        if tensor.layout is not torch.strided:
            raise UnjudgeableError("unsupported", f"{path}: forward returns a tensor with layout {tensor.layout}")
    if all(leaf is None for leaf in leaves):
        raise UnjudgeableError("unsupported", f"{path}: forward returns nothing that could be compared")
    return form_of(value), tuple(leaf_of(t, contiguous=True) for t in tensors)


def draws_random_numbers(model: Any, draw: Draw, path: Path, device: str) -> bool:
    def states() -> list[torch.Tensor]:
        found = [torch.get_rng_state()]
        if device != "cpu":
            found.append(torch.cuda.get_rng_state(torch.device(device)))
        return found

    before = states()
    call(model, draw, path)
    return any(not torch.equal(a, b) for a, b in zip(before, states(), strict=True))


def uses_tf32(model: Any, draw: Draw, path: Path, device: str) -> bool:
    """Whether torch's settings allow TF32 to a convolution, recurrent layer or product that the forward calls."""
    if device == "cpu":
        return False
    seen = OperatorNames()
    with seen:
        call(model, draw, path)
    convolves = any(word in name for name in seen.names for word in ("convolution", "cudnn", "rnn", "lstm", "gru"))
    multiplies = any(
        name in seen.names for name in ("mm", "addmm", "bmm", "baddbmm", "linear", "matmul", "addmv", "mv")
    )
    cudnn = torch.backends.cudnn.allow_tf32
    return bool((convolves and cudnn) or (multiplies and torch.backends.cuda.matmul.allow_tf32))


class OperatorNames(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Collects the names of the operators that run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled under this mode, and True imports torch._dynamo, which takes seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def other_states(model: Any, state: dict[str, torch.Tensor], device: str, count: int) -> list[dict[str, torch.Tensor]]:
    """`count` sets of other weights, none where the module has none."""
    if not any(v.dtype.is_floating_point and v.numel() for v in state.values()):
        return []
    names = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    generator = torch.Generator(device)
    generator.manual_seed(secrets.randbits(62))
    return [perturb(state, names, generator) for _ in range(count)]


def _determinism(q: Qualified, draw: Draw) -> None:
    seed = secrets.randbits(62) if q.seeded else None
    q.truth.use(q.states[0])
    first = q.truth.reference(draw, seed)
    worst = 0.0
    for attempt in ("again", "on poisoned memory"):
        second = _poisoned(q, draw, seed) if attempt != "again" else q.truth.reference(draw, seed)
        for one, two in zip(first, second, strict=True):
            off = compare.distance(one, two)
            if off.rms == 0.0:
                continue
            scale = compare.scale_of(one)
            relative = off.rms / scale if scale else float("inf")
            mantissa = compare.MANTISSA.get(one.dtype)
            if mantissa is None or not relative < 2.0 ** -(mantissa[0] - 4):
                raise UnjudgeableError(
                    "nondeterministic",
                    f"{q.path}: the reference gives another answer {attempt} (relative difference {relative:.1e})",
                    "The same inputs, weights and random seed must give the same output, up to rounding."
                    if attempt == "again"
                    else "Its output holds memory that it never wrote.",
                    "Remove what the output depends on besides its inputs, or write every element.",
                )
            worst = max(worst, relative)
    if worst:
        q.labels.append("nondeterministic_reference")
    q.checks.append(Check("deterministic reference", True, f"runs differ by {worst:.1e} of the output's scale"))


def _poisoned(q: Qualified, draw: Draw, seed: int | None) -> list[torch.Tensor]:
    """A run in which memory that nobody wrote holds NaN."""
    before = torch.are_deterministic_algorithms_enabled()
    try:
        flags.set_deterministic(True, warn_only=True)
        return q.truth.reference(draw, seed)
    except Exception:
        return q.truth.reference(draw, seed)  # some operator refuses the deterministic mode
    finally:
        flags.set_deterministic(before)


def _calibrate(q: Qualified, state: dict[str, torch.Tensor]) -> list[Bound | None]:
    """Bounds from one real and one mixed set of inputs, with these weights."""
    q.truth.use(state)
    truths, owns, cheaps = [], [], []
    for draw in (q.inputs.pool[1], q.inputs.fresh()):
        seed = secrets.randbits(62) if q.seeded else None
        plain = q.truth.reference(draw, seed)
        exact = q.truth.exact(draw)
        if exact is not None and not _agree(plain, exact):
            q.truth.give_up("its float64 run is far from its own answer")
            exact = None
        if exact is None:
            truth = plain
            own = [compare.distance(a, b) for a, b in zip(plain, q.truth.jittered(draw, seed), strict=True)]
        else:
            truth = exact
            own = [compare.distance(a, b, exact=True) for a, b in zip(plain, truth, strict=True)]
        cheap = _cheaper(q, draw, seed, truth)
        if q.tf32:
            own = [a if b is compare.INFINITE else compare.larger(a, b) for a, b in zip(own, cheap, strict=True)]
            cheap = _cheaper(q, draw, seed, truth, compare.BFLOAT16_BITS)
        truths.append(truth)
        owns.append(own)
        cheaps.append(cheap)
    bounds: list[Bound | None] = []
    for index, leaf in enumerate(q.outputs):
        floating = leaf.dtype in compare.MANTISSA
        bounds.append(
            compare.bound_for(
                leaf.dtype,
                [t[index] for t in truths],
                [o[index] for o in owns],
                [c[index] for c in cheaps],
            )
            if floating
            else None
        )
    return bounds


def _cheaper(
    q: Qualified, draw: Draw, seed: int | None, truth: list[torch.Tensor], mantissa: int | None = None
) -> list[compare.Distance]:
    """How far off a cheaper number format is; infinitely where the reference refuses rounded inputs."""
    try:
        rounded = q.truth.rounded(draw, seed, mantissa)
    except Exception:
        return [compare.INFINITE] * len(truth)
    return [compare.distance(a, b, exact=True) for a, b in zip(rounded, truth, strict=True)]


def _agree(plain: list[torch.Tensor], exact: list[torch.Tensor]) -> bool:
    if len(plain) != len(exact):
        return False
    for one, two in zip(plain, exact, strict=True):
        if one.shape != two.shape:
            return False
        if one.dtype in compare.MANTISSA and one.numel():
            off, scale = compare.distance(one, two, exact=True), compare.scale_of(two)
            if off.rms > FAR * scale and off.rms > 1e-30:
                return False
    return True


def _impostors(q: Qualified) -> None:
    """Answers that know nothing of the inputs or weights: whichever passes makes the task degenerate."""
    q.truth.use(q.states[0])
    one = q.inputs.pool[0]
    two = q.inputs.fresh() if q.inputs.frozen else q.inputs.pool[1]
    seed = secrets.randbits(62) if q.seeded else None
    right = q.truth.reference(one, seed)
    other = q.truth.reference(two, seed)
    impostors: dict[str, Callable[[int], torch.Tensor]] = {
        "zeros": lambda i: torch.zeros_like(right[i]),
        "a constant": lambda i: torch.full_like(right[i], compare.comparable(other[i]).double().mean().item()),
        "the answer to other inputs": lambda i: other[i],
    }
    if len(q.states) > 1:
        q.truth.use(q.states[1])
        reweighted = q.truth.reference(one, seed)
        impostors["other weights"] = lambda i: reweighted[i]
    passed = [name for name, make in impostors.items() if all(_passes(q, right, i, make) for i in range(len(right)))]
    if not right:
        passed = []
    if {"zeros", "a constant", "the answer to other inputs"} & set(passed):
        q.labels.append("constant_output")
    elif passed:
        q.labels.append("weak_task")
    detail = f"passed by: {', '.join(passed)}" if passed else f"{len(impostors)} kinds of impostor fail"
    q.checks.append(Check("impostors", not passed, detail))


def _passes(q: Qualified, right: list[torch.Tensor], index: int, make: Callable[[int], torch.Tensor]) -> bool:
    bound = q.bounds[0][index]
    try:
        fake = make(index)
    except (RuntimeError, TypeError):
        return False
    if bound is None:
        return compare.equal(fake, right[index])
    return bound.excess(compare.distance(fake, right[index]), compare.scale_of(right[index]), extra=1.0) <= 1
