"""What writes candidates: one file a policy, one protocol."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cudal1_core.errors import UsageError

if TYPE_CHECKING:
    from cudal1_core.policies.base import Policy

POLICIES = ("playbook", "replay", "openai")


def make_policy(
    name: str,
    *,
    candidates: Path | None = None,
    url: str | None = None,
    model: str | None = None,
    streams: int = 8,
    log_dir: Path | None = None,
) -> Policy:
    """The policy of that name; its module is imported only now. Raises UsageError."""
    if name == "playbook":
        from cudal1_core.policies.playbook import PlaybookPolicy

        return PlaybookPolicy(log_dir / "playbook.log" if log_dir else None)
    if name == "replay":
        from cudal1_core.policies.replay import ReplayPolicy

        if candidates is None:
            raise UsageError(
                "The replay policy needs candidates",
                "It plays back code that already exists.",
                "Add --candidates with a .py file, a folder of them, or a .jsonl file.",
            )
        return ReplayPolicy(candidates)
    if name == "openai":
        from cudal1_core.policies.openai import OpenAIPolicy

        if url is None:
            raise UsageError(
                "The openai policy needs the address of a server",
                "Any server with OpenAI's chat completions will do: llama.cpp, vLLM, a hosted one.",
                "Add --url, for example --url http://localhost:8000/v1",
            )
        return OpenAIPolicy(url, model, streams=streams)
    raise UsageError(f"There is no policy {name!r}", f"Known policies: {', '.join(POLICIES)}.")
