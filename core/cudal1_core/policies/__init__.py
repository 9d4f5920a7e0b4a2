"""What writes candidates: one file a policy, one protocol."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cudal1_core.errors import UsageError

if TYPE_CHECKING:
    from cudal1_core.policies.base import Policy

POLICIES = ("playbook", "replay", "openai", "transformers", "vllm")
WITH_ADAPTERS = ("transformers", "vllm")
WITH_MODEL = ("openai", "transformers", "vllm")  # what --model names is theirs


def make_policy(
    name: str,
    *,
    candidates: Path | None = None,
    url: str | None = None,
    model: str | None = None,
    streams: int = 8,
    adapter: Path | None = None,
    takes_adapters: bool = False,
    device: str = "auto",
    dtype: str = "auto",
    longest: int | None = None,
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
        return OpenAIPolicy(url, model, streams=streams, longest=longest)
    if name in WITH_MODEL:
        from cudal1_core.policies.weights import Weights

        if model is None:
            raise UsageError(f"The {name} policy needs a model", "", "Add --model with a folder or the id of a model.")
        if adapter is not None and not (adapter / "adapter_config.json").is_file():
            raise UsageError(f"--adapter {adapter} is no LoRA adapter", "It holds no adapter_config.json.")
        weights = Weights(
            model,
            adapter=adapter,
            takes_adapters=takes_adapters,
            device=device,
            dtype=dtype,
            longest=longest or 2048,
        )
        if name == "vllm":
            from cudal1_core.policies.vllm import VllmPolicy

            return VllmPolicy(weights, streams=streams, log=log_dir / "vllm.log" if log_dir else None)
        from cudal1_core.policies.transformers import TransformersPolicy

        return TransformersPolicy(weights, log_dir / "transformers.log" if log_dir else None)
    raise UsageError(f"There is no policy {name!r}", f"Known policies: {', '.join(POLICIES)}.")
