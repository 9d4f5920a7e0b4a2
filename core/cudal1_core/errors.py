"""The one exception tree for errors a person can act on."""

from __future__ import annotations


class Cudal1Error(Exception):
    """An error with a title, what it means, and what to do next.

    `exit_status` is the documented status of the command line: 2 cannot be judged or wrong usage,
    3 the program itself failed.
    """

    exit_status = 2

    def __init__(self, title: str, meaning: str = "", next_step: str = "") -> None:
        super().__init__(title)
        self.title = title
        self.meaning = meaning
        self.next_step = next_step

    def __str__(self) -> str:
        return "\n".join(part for part in (self.title, self.meaning, self.next_step) if part)


class UsageError(Cudal1Error):
    """The command line asks for something that cannot be done."""


class UnjudgeableError(Cudal1Error):
    """The reference cannot be judged; `category` is one of verdict.UNJUDGEABLE_CATEGORIES."""

    def __init__(self, category: str, title: str, meaning: str = "", next_step: str = "") -> None:
        super().__init__(title, meaning, next_step)
        self.category = category


class PolicyError(Cudal1Error):
    """The policy cannot write candidates."""


class RefereeError(Cudal1Error):
    """The referee itself failed: never the candidate's fault, never the reference's."""

    exit_status = 3


def exit_status(error: Exception) -> int:
    """The documented status of the command line for any error."""
    return error.exit_status if isinstance(error, Cudal1Error) else 3
