"""The one protocol of everything that writes candidates."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from cudal1_core.candidate import Candidate
from cudal1_core.errors import PolicyError
from cudal1_core.reference import Task
from cudal1_core.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate with its verdict, as a policy sees earlier work."""

    candidate: Candidate
    verdict: Verdict
    fed: bool = False  # the person fed it into the next round


@dataclass(frozen=True, slots=True)
class Turn:
    """An answer that did not pass, and what the model is told of it."""

    answer: str
    reply: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a policy is asked: the task, the exemplars shown, and everything judged so far in this task."""

    task: Task
    round: int  # from 1
    text: str  # the contrastive prompt for a language model
    exemplars: tuple[Judged, ...]
    history: tuple[Judged, ...]
    seed: int
    turns: tuple[Turn, ...] = ()  # what followed the text: earlier answers, and what was said to them


def messages(prompt: Prompt) -> list[dict[str, str]]:
    """The conversation as chat templates and chat servers take it."""
    said = [{"role": "user", "content": prompt.text}]
    for turn in prompt.turns:
        said += [{"role": "assistant", "content": turn.answer}, {"role": "user", "content": turn.reply}]
    return said


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of text of candidate `index` of the group (0 to n-1)."""

    index: int
    text: str
    done: bool = False  # last piece of this candidate
    title: str = ""  # set on the last piece where the policy knows it
    techniques: tuple[str, ...] = ()
    trouble: PolicyError | None = None  # on the last piece: why it ends too early


class Policy(Protocol):
    """Writes candidates. Text there at once is one fragment; streams are many."""

    name: str
    converses: bool  # answers to the turns of a prompt, so that a repair can be asked for

    async def prepare(self) -> None:
        """Starts what takes long (a child, a model) while the reference is still being read. Raises PolicyError,
        which `generate` may raise again."""
        ...

    async def fit(self, texts: Sequence[str]) -> int:
        """The index of the first text that leaves room for an answer. Raises PolicyError where none does."""
        ...

    def generate(self, prompt: Prompt, n: int) -> AsyncIterator[Fragment]:
        """At most n candidates; fewer when nothing new is left to try. Raises PolicyError."""
        ...

    async def close(self) -> None:
        """Ends every child process."""
        ...


@runtime_checkable
class TakesAdapters(Protocol):
    """A policy whose model can change while it runs."""

    async def adapt(self, adapter: Path) -> None:
        """The next streams come from this LoRA adapter (a folder); open ones end on the old. Raises PolicyError."""
        ...


@runtime_checkable
class DropsStreams(Protocol):
    """A policy that can leave one candidate of a group unwritten."""

    async def drop(self, prompt: Prompt, index: int) -> None:
        """Ends this candidate of an open `generate` of this very prompt, and no other. Raises PolicyError."""
        ...


@runtime_checkable
class TellsLoading(Protocol):
    """A policy that takes long to get ready."""

    def listen(self, tell: Callable[[str], None]) -> None:
        """`tell` is called with each step of loading, and with an empty text at its end."""
        ...
