"""Advice as data: findings, similar known cheats, and what a reviewer thinks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from cudal1_core.advice.kinds import KINDS, SUSPECT


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is written in the source; whether it ran, and what it did, the source does not say."""

    kind: str  # one of kinds.KINDS
    line: int  # from 1
    text: str  # that line

    @property
    def meaning(self) -> str:
        return KINDS.get(self.kind, "")

    @property
    def suspect(self) -> bool:
        return self.kind in SUSPECT


@dataclass(frozen=True, slots=True)
class Similar:
    """A known cheat that the source resembles."""

    name: str
    kind: str  # in words: "answers kept by the inputs' address"
    why: str  # what makes it a cheat
    similarity: float  # 0 to 1


@dataclass(frozen=True, slots=True)
class Review:
    """A model's opinion; an unusable answer has no opinion and says why."""

    model: str
    cheat: bool | None
    kind: str = ""
    line: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    findings: tuple[Finding, ...] = ()  # in order of lines
    similar: tuple[Similar, ...] = ()  # most similar first
    review: Review | None = None  # None: nobody was asked

    @property
    def labels(self) -> tuple[str, ...]:
        """Kinds of what looks like a cheat, and `reviewer_objects`; never among a verdict's labels."""
        kinds = sorted({finding.kind for finding in self.findings if finding.suspect})
        return (*kinds, "reviewer_objects") if self.review is not None and self.review.cheat else tuple(kinds)

    def to_json(self) -> dict[str, Any]:
        """With what each finding means, for readers that do not know the kinds."""
        data = asdict(self)
        for told, finding in zip(data["findings"], self.findings, strict=True):
            told["meaning"] = finding.meaning
        return {"labels": list(self.labels), **data}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Advice:
        review = data.get("review")
        return cls(
            tuple(Finding(told["kind"], told["line"], told["text"]) for told in data["findings"]),
            tuple(Similar(**told) for told in data["similar"]),
            Review(**review) if review else None,
        )
