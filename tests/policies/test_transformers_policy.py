"""A tiny random model writes several streams at once, in a child."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="transformers is not installed")

from cudal1_core.errors import PolicyError
from cudal1_core.policies.base import Fragment, Prompt, Turn
from cudal1_core.policies.transformers import TransformersPolicy
from cudal1_core.policies.weights import Weights

from tests.unit.scripted import make_task

# Made in a process of its own, as the policy loads it: this process imports no torch.
MAKE = """
import sys, torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
torch.manual_seed(0)
folder, template = sys.argv[1], sys.argv[2]
letters = sorted(pre_tokenizers.ByteLevel.alphabet())
tokenizer = Tokenizer(models.BPE({letter: at for at, letter in enumerate(["<end>", *letters])}, []))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")
if template: fast.chat_template = template
fast.save_pretrained(folder)
config = LlamaConfig(vocab_size=len(fast), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
    num_attention_heads=2, max_position_embeddings=1024, eos_token_id=0, bos_token_id=None)
model = LlamaForCausalLM(config)
model.save_pretrained(folder)
from peft import LoraConfig, get_peft_model
lora = LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False)
get_peft_model(model, lora).save_pretrained(folder + "-adapter")
"""
TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[go]"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights") / "tiny"
    subprocess.run([sys.executable, "-c", MAKE, str(folder), TEMPLATE], check=True, capture_output=True)
    return folder


def asked(text: str = "write", *turns: Turn) -> Prompt:
    return Prompt(task=make_task(), round=1, text=text, exemplars=(), history=(), seed=3, turns=turns)


@asynccontextmanager
async def policy(model: Path, longest: int = 24, **more: object) -> AsyncIterator[TransformersPolicy]:
    opened = TransformersPolicy(Weights(str(model), longest=longest, device="cpu", **more))  # type: ignore[arg-type]
    try:
        yield opened
    finally:
        await opened.close()


def joined(fragments: list[Fragment]) -> dict[int, str]:
    return {index: "".join(one.text for one in fragments if one.index == index) for index in range(4)}


def test_streams_arrive_side_by_side_repeat_by_seed_and_follow_a_new_adapter(model: Path) -> None:
    async def play() -> None:
        async with policy(model, temperature=0.9) as opened:
            first = [one async for one in opened.generate(asked(), 4)]
            again = [one async for one in opened.generate(asked(), 4)]
            assert first == again
            assert sorted(one.index for one in first if one.done) == [0, 1, 2, 3]
            order = [one.index for one in first if not one.done]
            assert order != sorted(order)  # together, not one after the other
            assert len(set(joined(first).values())) == 4
            for _ in range(2):
                await opened.adapt(Path(f"{model}-adapter"))
            assert joined([one async for one in opened.generate(asked(), 4)]) != joined(first)

    asyncio.run(play())


def test_leaving_one_request_leaves_the_other_alone(model: Path) -> None:
    async def play() -> None:
        async with policy(model, longest=100, temperature=0.0) as opened:
            alone = joined([one async for one in opened.generate(asked("b"), 2)])

            async def leave() -> None:
                async with aclosing(opened.generate(asked("a"), 2)) as stream:
                    async for _ in stream:
                        return

            async def whole() -> list[Fragment]:
                return [one async for one in opened.generate(asked("b"), 2)]

            _, other = await asyncio.gather(leave(), whole())
            assert joined(other) == alone
            assert joined([one async for one in opened.generate(asked("b"), 2)]) == alone

    asyncio.run(play())


def test_one_stream_can_be_dropped_and_the_others_come_to_their_end(model: Path) -> None:
    async def play() -> None:
        async with policy(model, longest=60, temperature=0.0) as opened:
            prompt = asked("b")
            told: list[Fragment] = []
            async for one in opened.generate(prompt, 3):
                told.append(one)
                if len(told) == 12:
                    await opened.drop(prompt, 1)
                    await opened.drop(prompt, 1)  # twice does no harm
            assert sorted(one.index for one in told if one.done) == [0, 1, 2]
            texts = joined(told)
            assert len(texts[1]) < len(texts[0]) == len(texts[2])
            await opened.drop(prompt, 0)  # of a request that is over
            assert len([one async for one in opened.generate(prompt, 1)]) > 1

    asyncio.run(play())


def test_prompts_are_measured_and_what_cannot_fit_is_said(model: Path) -> None:
    async def play() -> None:
        async with policy(model) as opened:
            steps: list[str] = []
            opened.listen(steps.append)
            assert await opened.fit(["x" * 2000, "x" * 600, "x"]) == 2
            assert "reading the weights" in steps
            assert steps[-1] == ""
            assert await opened.fit(["x" * 400, "x"]) == 0
            with pytest.raises(PolicyError, match="too long for this model"):
                await opened.fit(["x" * 2000])

    asyncio.run(play())


def test_a_model_that_is_not_there_is_named_and_a_child_that_died_too(tmp_path: Path, model: Path) -> None:
    async def play() -> None:
        async with policy(tmp_path / "none") as opened:
            with pytest.raises(PolicyError, match="none cannot be loaded"):
                await opened.prepare()
        async with policy(model, longest=900) as opened:
            stream = opened.generate(asked(), 1)
            await anext(stream)
            assert opened._child is not None
            opened._child.kill()
            with pytest.raises(PolicyError, match="could not write"):
                async for _ in stream:
                    pass

    asyncio.run(play())


# The rest looks into the child; it runs in a process of its own.
INSIDE = """
import sys
from contextlib import contextmanager
from cudal1_core.policies.generator import __main__ as child, loading, streams
loaded = loading.load(sys.argv[1], None, "cpu", "auto", lambda what: None)
"""


def inside(model: Path, program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INSIDE + program, str(model)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_cancelled_stream_changes_nothing_for_the_others_and_greedy_is_what_the_library_writes(model: Path) -> None:
    inside(
        model,
        """
ids = streams.encode(loaded, [{"role": "user", "content": "hello"}])
assert loaded.tokenizer.decode(ids) == "[user]hello[go]"
def play(cancel):
    job = streams.Job(loaded, ids, 3, longest=20, temperature=0.0, top_p=1.0, seed=1)
    texts = ["", "", ""]
    for step in range(20):
        if step == 5 and cancel:
            job.cancel(1)
        for piece in job.step():
            texts[piece.index] += piece.text
        if job.finished: break
    return texts
whole, cut = play(False), play(True)
assert whole[0] == cut[0] == cut[2] and len(cut[1]) < len(whole[1])
import torch
library = loaded.model.generate(torch.tensor([ids]), max_new_tokens=20, do_sample=False)[0, len(ids):]
assert loaded.tokenizer.decode(library, skip_special_tokens=True) == whole[0]
loaded.tokenizer.chat_template = None
assert "### Response:" in loaded.tokenizer.decode(streams.encode(loaded, [{"role": "user", "content": "hello"}]))
""",
    )


def test_every_token_is_made_inside_a_turn_that_is_given_back(model: Path) -> None:
    inside(
        model,
        """
import queue
inside = taken = 0
@contextmanager
def turn():
    global inside, taken
    inside, taken = inside + 1, taken + 1
    yield
    inside -= 1
forward = loaded.model.forward
def watched(*words, **more):
    assert inside == 1
    return forward(*words, **more)
loaded.model.forward = watched
said = []
child.SLICE_S = 0.0001
asks = queue.Queue()
asks.put(child.lines.line("generate", id=1, messages=[{"role": "user", "content": "x"}], n=2, longest=10,
    temperature=0.0, top_p=1.0, seed=0))
server = child.Server(loaded, lambda word, **values: said.append((word, values)), turn)
server._take(*child.lines.parse(asks.get()))
while server._jobs:
    server.play_slice()
    assert inside == 0
assert taken > 1 and sum(values["done"] for word, values in said) == 2
""",
    )
