"""What the referee says of a candidate. The JSON form is the contract of `cudal1-tui verify --json`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

VerdictWord = Literal["accepted", "rejected", "unjudgeable"]

REJECTED_CATEGORIES = (
    "no_code",
    "build_failed",
    "crashed",
    "timed_out",
    "out_of_memory",
    "wrong_result",
    "wrong_form",
    "changes_inputs",
    "reuses_output",
    "reduced_precision",
    "weights_baked_in",
    "dishonest",
)
UNJUDGEABLE_CATEGORIES = (
    "bad_reference",
    "reference_failed",
    "nondeterministic",
    "unsupported",
    "no_device",
)
EXIT_STATUS: dict[VerdictWord, int] = {"accepted": 0, "rejected": 1, "unjudgeable": 2}


@dataclass(frozen=True, slots=True)
class Check:
    """One named test inside a verdict, with its evidence in plain words."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judgement with its evidence. Times are milliseconds a call; speedup is reference / candidate."""

    verdict: VerdictWord
    category: str | None = None
    reason: str | None = None
    speedup: float | None = None  # rounded to two decimals towards 1
    speedup_interval: tuple[float, float] | None = None
    reference_ms: float | None = None
    candidate_ms: float | None = None
    win: str | None = None  # what really ran; the candidate's own claim, never decides
    baselines: dict[str, float] = field(default_factory=dict)  # name -> ms a call
    checks: tuple[Check, ...] = ()
    labels: tuple[str, ...] = ()
    device: dict[str, Any] = field(default_factory=dict)
    isolation: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    seed: str = ""
    roofline: dict[str, Any] | None = None  # how near it comes to what the device allows, see referee.roofline

    @property
    def accepted(self) -> bool:
        return self.verdict == "accepted"

    @property
    def exit_status(self) -> int:
        return EXIT_STATUS[self.verdict]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Verdict:
        fields = dict(data)
        interval = fields.get("speedup_interval")
        fields["speedup_interval"] = tuple(interval) if interval else None
        fields["checks"] = tuple(Check(**c) for c in fields.get("checks", ()))
        fields["labels"] = tuple(fields.get("labels", ()))
        fields["isolation"] = tuple(fields.get("isolation", ()))
        return cls(**fields)


def round_towards_one(speedup: float) -> float:
    """Two decimals, towards 1, as the paper rounds scores (section 2.4.4): 1.118 -> 1.11, 0.992 -> 1.0.

    Speedups below 1 that would round to 0 keep two significant digits.
    """
    from math import ceil, floor, log10

    if speedup >= 1:
        return floor(speedup * 100 + 1e-9) / 100
    if speedup >= 0.1:
        return ceil(speedup * 100 - 1e-9) / 100
    digits = 1 - floor(log10(speedup))
    return round(speedup, digits)
