"""Several streams of one prompt, decoded together; each can end or be cancelled without the others.

The prompt is read once and its cache copied for every stream. All rows of a job are equally long, so nothing is
padded; a row that ended leaves the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import DynamicCache

from cudal1_core.policies.generator.loading import Loaded

PLAIN_ROLES = {"user": "### Instruction:", "assistant": "### Response:"}  # for models without a chat template


@dataclass(frozen=True, slots=True)
class Piece:
    index: int
    text: str
    done: bool


@dataclass(slots=True)
class _Row:
    index: int
    tokens: list[int] = field(default_factory=list)
    said: int = 0  # tokens whose text has been told
    before: int = 0  # where decoding starts, a little earlier, since a token's text depends on its neighbours


def encode(loaded: Loaded, messages: Sequence[dict[str, str]]) -> list[int]:
    """Token ids of a conversation, through the model's chat template or a plain form without one."""
    tokenizer = loaded.tokenizer
    if tokenizer.chat_template:
        text = tokenizer.apply_chat_template(list(messages), add_generation_prompt=True, tokenize=False)
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])
    parts = [f"{PLAIN_ROLES[message['role']]}\n{message['content']}\n" for message in messages]
    return list(tokenizer("\n".join([*parts, f"{PLAIN_ROLES['assistant']}\n"]))["input_ids"])


class Job:
    """The streams of one request. `step` makes one token of each."""

    def __init__(
        self, loaded: Loaded, ids: Sequence[int], n: int, *, longest: int, temperature: float, top_p: float, seed: int
    ) -> None:
        self._loaded = loaded
        self._rows = [_Row(index) for index in range(n)]
        self._left = min(longest, loaded.context - len(ids))
        self._temperature = temperature
        self._top_p = top_p
        device = loaded.model.device
        self._random = torch.Generator(device).manual_seed(seed)
        self._cache: Any = None
        self._next = torch.tensor([list(ids)], device=device)

    @property
    def finished(self) -> bool:
        return not self._rows

    def cancel(self, index: int | None) -> None:
        """Ends one stream, or all, without a last piece."""
        self._keep([at for at, row in enumerate(self._rows) if index is not None and row.index != index])

    @torch.inference_mode()
    def step(self) -> Iterator[Piece]:
        first = self._cache is None
        answer = self._loaded.model(
            input_ids=self._next,
            past_key_values=DynamicCache() if first else self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        self._cache = answer.past_key_values
        logits = answer.logits[:, -1].float()
        if first:
            self._cache.batch_repeat_interleave(len(self._rows))
            logits = logits.expand(len(self._rows), -1)
        chosen = self._sample(logits)
        self._next = chosen
        self._left -= 1
        pieces, staying = [], []
        for at, (row, token) in enumerate(zip(list(self._rows), chosen[:, 0].tolist(), strict=True)):
            ended = token in self._loaded.ends
            if not ended:
                row.tokens.append(token)
            done = ended or self._left <= 0
            text = self._text(row, done)
            if text or done:
                pieces.append(Piece(row.index, text, done))
            if not done:
                staying.append(at)
        self._keep(staying)
        yield from pieces

    def _sample(self, logits: torch.Tensor) -> torch.Tensor:
        if self._temperature <= 0:
            return logits.argmax(-1, keepdim=True)
        odds = torch.softmax(logits / self._temperature, -1)
        if self._top_p < 1:
            ordered, order = odds.sort(-1, descending=True)
            ordered[ordered.cumsum(-1) - ordered > self._top_p] = 0
            picked = torch.multinomial(ordered, 1, generator=self._random)
            return order.gather(-1, picked)
        return torch.multinomial(odds, 1, generator=self._random)

    def _text(self, row: _Row, done: bool) -> str:
        """What is new and whole: half a character waits for its other half."""
        decode = self._loaded.tokenizer.decode
        told = decode(row.tokens[row.before : row.said], skip_special_tokens=True)
        whole = decode(row.tokens[row.before :], skip_special_tokens=True)
        if len(whole) <= len(told) or (whole.endswith("\ufffd") and not done):
            return ""
        row.before, row.said = row.said, len(row.tokens)
        return str(whole[len(told) :])

    def _keep(self, places: list[int]) -> None:
        if len(places) == len(self._rows):
            return
        self._rows = [self._rows[at] for at in places]
        if self._cache is not None and places:
            rows = torch.tensor(places, device=self._next.device)
            self._cache.batch_select_indices(rows)
            self._next = self._next[rows]
