"""A candidate: one piece of source that defines `ModelNew`, with its origin."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """Written by a policy in a round; judged once by the referee."""

    id: str  # "c07": unique in its run, in order of writing
    round: int  # from 1
    policy: str
    source: str  # the Python code alone; empty when the answer held none
    text: str  # the whole answer, with its analysis and design sections
    title: str = ""  # one line for the table: "algebraic simplification + operation fusion"
    techniques: tuple[str, ...] = ()
    exemplars: tuple[str, ...] = ()  # ids of the candidates shown in the prompt
    prompt: str = ""  # what it was asked with, where that was not the round's prompt
    repairs: str = ""  # id of the candidate it mends

    @property
    def source_hash(self) -> str:
        return source_hash(self.source)


def source_hash(source: str) -> str:
    """SHA-256 of the text, as hexadecimal."""
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()
