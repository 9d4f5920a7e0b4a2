"""The reference and the task read from it. Reading runs the user's code, so it happens in a worker."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from cudal1_core.verdict import Check


@dataclass(frozen=True, slots=True)
class Task:
    """A reference read and described."""

    path: str  # absolute path of the reference file
    model: str  # name of the class, usually "Model"
    source: str
    source_hash: str
    device: str  # "cpu", "cuda:0"
    device_name: str  # "NVIDIA H200", or the processor's name
    dtype: str  # the main floating type of the outputs, "float32"
    inputs: tuple[str, ...]  # one line a leaf: "float32[4096, 4096]"
    outputs: tuple[str, ...]
    parameters: int  # number of weights
    labels: tuple[str, ...] = ()  # constant_output, weak_task, nondeterministic_reference
    checks: tuple[Check, ...] = ()  # the qualification's evidence
    flags: dict[str, Any] = field(default_factory=dict)  # torch settings in force after loading the reference

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Task:
        fields = dict(data)
        for name in ("inputs", "outputs", "labels"):
            fields[name] = tuple(fields[name])
        fields["checks"] = tuple(Check(**c) for c in fields["checks"])
        return cls(**fields)
