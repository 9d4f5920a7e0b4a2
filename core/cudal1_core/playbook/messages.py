"""What the policy and its child say to each other: one JSON object a line. Imports no torch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Tried:
    """An earlier candidate, as far as the search needs it."""

    source_hash: str
    techniques: tuple[str, ...]
    accepted: bool
    speedup: float | None
    fed: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for at most n candidates."""

    path: str  # absolute path of the reference
    source: str
    model: str
    device: str
    n: int
    seed: int
    tried: tuple[Tried, ...]

    def line(self) -> str:
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def parse(cls, line: str) -> Ask:
        data: dict[str, Any] = json.loads(line)
        data["tried"] = tuple(Tried(**{**t, "techniques": tuple(t["techniques"])}) for t in data["tried"])
        return cls(**data)


@dataclass(frozen=True, slots=True)
class Written:
    """One candidate; `text` holds its three sections."""

    text: str
    title: str
    techniques: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of an answer; `trouble` says why there is none."""

    trouble: str = ""


def reply_line(reply: Written | Finished) -> str:
    word = "written" if isinstance(reply, Written) else "finished"
    return json.dumps({"reply": word, **asdict(reply)}) + "\n"


def parse_reply(line: str) -> Written | Finished:
    """Raises ValueError for anything else."""
    data = json.loads(line)
    word = data.pop("reply", None) if isinstance(data, dict) else None
    if word == "written":
        return Written(data["text"], data["title"], tuple(data["techniques"]))
    if word == "finished":
        return Finished(data["trouble"])
    raise ValueError("not a reply of the playbook")
