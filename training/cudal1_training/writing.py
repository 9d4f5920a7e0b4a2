"""Answers of the model that is being trained, several to one prompt, told token by token."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

import torch
from cudal1_core.events import Event, TokenArrived
from cudal1_core.policies.base import Judged
from cudal1_core.policies.generator.loading import Loaded
from cudal1_core.policies.generator.streams import Job, encode
from cudal1_core.prompt import PromptOptions, build_prompt, shorter
from cudal1_core.reference import Task

from cudal1_training.folder import PausedError


class Writer:
    """Holds the model until `close`."""

    def __init__(self, loaded: Loaded, tell: Callable[[Event], None]) -> None:
        self.loaded = loaded
        self._tell = tell

    def write(self, prompt: str, names: Sequence[str], *, longest: int, temperature: float, seed: int) -> list[str]:
        """One answer for each name of a candidate. Raises PausedError where memory runs out."""
        ids = encode(self.loaded, [{"role": "user", "content": prompt}])
        job = Job(self.loaded, ids, len(names), longest=longest, temperature=temperature, top_p=1.0, seed=seed)
        texts = [""] * len(names)
        try:
            while not job.finished:
                for piece in job.step():
                    texts[piece.index] += piece.text
                    if piece.text:
                        self._tell(TokenArrived(candidate=names[piece.index], text=piece.text))
        except torch.OutOfMemoryError as error:
            raise out_of_memory(
                error, "writing answers", "fewer samples, shorter answers (longest), or a smaller model"
            ) from error
        return texts

    def close(self) -> None:
        del self.loaded
        free_memory()


def fitting(tokenizer: Any, context: int, longest: int, task: Task, chosen: tuple[Judged, ...], options: PromptOptions
            ) -> tuple[tuple[Judged, ...], str] | None:  # fmt: skip
    """Exemplars and prompt that leave `longest` tokens for the answer; None where not even the task alone does."""
    for choice in shorter(chosen):
        text = build_prompt(task, choice, options)
        if prompt_tokens(tokenizer, text) + longest <= context:
            return choice, text
    return None


def prompt_tokens(tokenizer: Any, prompt: str) -> int:
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt}], add_generation_prompt=True, tokenize=False
    )
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])


def free_memory() -> None:
    """Gives back what torch keeps, so that the referee's processes find room on the GPU."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def out_of_memory(error: BaseException, doing: str, advice: str) -> PausedError:
    return PausedError(
        f"Memory ran out while {doing}",
        " ".join(str(error).split())[:300],
        f"Training is kept up to its last checkpoint. The same command goes on, with {advice}.",
    )
