"""Tokens a second and time to the first token: the transformers policy against the bare library, same model, same run.

    python benchmarks/policy.py MODEL [--streams 8] [--tokens 64] [--repeats 3] [--device cpu]

The two sides take turns. Each loads the model for itself, so both are in memory at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time

from cudal1_core.policies.base import Prompt
from cudal1_core.policies.transformers import TransformersPolicy
from cudal1_core.policies.weights import Weights
from cudal1_core.reference import Task

TEXT = "Explain in detail how a matrix product is computed fast on a modern processor. " * 8
TASK = Task("/m.py", "Model", "", "", "cpu", "", "float32", (), (), 0)

BARE = """
import json, sys, time, torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LogitsProcessorList
name, device, dtype, n, longest = sys.argv[1:4] + [int(word) for word in sys.argv[4:6]]
tokenizer = AutoTokenizer.from_pretrained(name)
model = AutoModelForCausalLM.from_pretrained(name, dtype=getattr(torch, dtype)).to(device).eval()
print("ready", flush=True)
for text in sys.stdin:
    chat = [{"role": "user", "content": json.loads(text)}]
    ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    ids = ids.to(device)
    start = time.monotonic()
    seen = []
    def look(tokens, scores):
        seen.append(time.monotonic() - start)
        return scores
    model.generate(**ids, do_sample=True, temperature=0.8, top_p=0.95, num_return_sequences=n, max_new_tokens=longest,
        min_new_tokens=longest, logits_processor=LogitsProcessorList([look]))
    print(json.dumps([seen[0], n * longest / (time.monotonic() - start)]), flush=True)
"""


async def ours(policy: TransformersPolicy, n: int, tokens: int, seed: int) -> tuple[float, float]:
    """Seconds to the first piece of text, and pieces a second: nearly every token is a piece, none is two."""
    prompt = Prompt(task=TASK, round=1, text=TEXT, exemplars=(), history=(), seed=seed)
    start, first, pieces = time.monotonic(), 0.0, 0
    async for fragment in policy.generate(prompt, n):
        first = first or time.monotonic() - start
        pieces += bool(fragment.text)
    return first, pieces / (time.monotonic() - start)


async def compare(options: argparse.Namespace) -> None:

    dtype = "bfloat16" if options.device.startswith("cuda") else "float32"
    weights = Weights(options.model, device=options.device, dtype=dtype, longest=options.tokens)
    policy = TransformersPolicy(weights)
    bare = await asyncio.create_subprocess_exec(
        sys.executable, "-c", BARE, options.model, options.device, dtype, str(options.streams), str(options.tokens),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert bare.stdin is not None
    assert bare.stdout is not None
    try:
        await policy.prepare()
        await bare.stdout.readline()
        rows = []
        for repeat in range(-1, options.repeats):  # the first pair warms both up
            mine = await ours(policy, options.streams, options.tokens, repeat + 1)
            bare.stdin.write(json.dumps(TEXT).encode() + b"\n")
            theirs = json.loads(await bare.stdout.readline())
            if repeat >= 0:
                rows.append((*mine, *theirs))
                print(f"ours {mine[0]:.2f} s {mine[1]:.1f} tok/s · bare {theirs[0]:.2f} s {theirs[1]:.1f} tok/s")
        middle = [statistics.median(column) for column in zip(*rows, strict=True)]
        print(f"median: ours {middle[0]:.2f} s, {middle[1]:.1f} tok/s; bare {middle[2]:.2f} s, {middle[3]:.1f} tok/s")
    finally:
        bare.kill()
        await bare.wait()
        await policy.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    asyncio.run(compare(parser.parse_args()))
