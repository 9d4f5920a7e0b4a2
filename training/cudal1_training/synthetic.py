"""A generator of tasks: operators and fusions with sensible shapes, for people without a task set of their own.

Each family is one template; its tasks differ in shapes, and where a family has a tail, in what follows the operator.
Shapes are drawn from sizes that occur in models, and not only powers of two.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Synthetic:
    name: str
    family: str
    source: str


@dataclass(frozen=True, slots=True)
class _Parts:
    init: str  # statements of __init__
    forward: str  # statements of forward, ending in a return
    inputs: str  # expression: a list of tensors
    more: str = ""  # further inputs of forward: ", y"


_TEMPLATE = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
{init}

    def forward(self, x{more}):
{forward}


def get_inputs():
    return {inputs}


def get_init_inputs():
    return []
"""

_TAILS = (
    "torch.relu(x)",
    "F.gelu(x)",
    "torch.sigmoid(x) * x",
    "torch.tanh(x)",
    "F.leaky_relu(x, 0.1)",
    "x * 0.5 + 1.0",
)
_CHAIN = (
    *_TAILS,
    "torch.clamp(x, -2.0, 2.0)",
    "torch.exp(-x * x)",
    "x + torch.sin(x)",
    "F.softplus(x)",
    "x.abs() + 0.1",
)

_Family = Callable[[random.Random, bool], _Parts]


def generate(count: int, seed: int, small: bool) -> list[Synthetic]:
    """`count` different tasks, over all families in turn. `small` shapes take milliseconds on a CPU."""
    rng = random.Random(f"synthetic {seed}")
    names = list(FAMILIES)
    rng.shuffle(names)
    found: dict[str, Synthetic] = {}
    tries = 0
    while len(found) < count and tries < 50 * count:
        family = names[tries % len(names)]
        tries += 1
        parts = FAMILIES[family](rng, small)
        source = _TEMPLATE.format(
            init=_indented(parts.init or "pass"), forward=_indented(parts.forward), inputs=parts.inputs, more=parts.more
        )
        if source not in found:
            found[source] = Synthetic(f"synthetic-{len(found) + 1:03d}-{family}", family, source)
    return list(found.values())


def _indented(text: str) -> str:
    return "\n".join(f"        {line}" for line in text.splitlines())


def _pick(rng: random.Random, small: bool, little: tuple[int, ...], large: tuple[int, ...]) -> int:
    return rng.choice(little if small else large)


def _rows(rng: random.Random, small: bool) -> int:
    return _pick(rng, small, (64, 96, 128, 200), (1024, 2048, 4096, 6000))


def _columns(rng: random.Random, small: bool) -> int:
    return _pick(rng, small, (128, 192, 256, 384), (1024, 1536, 4096, 8192))


def _matrix(rng: random.Random, small: bool) -> tuple[int, int]:
    return _rows(rng, small), _columns(rng, small)


def _chain(rng: random.Random, small: bool) -> _Parts:
    rows, columns = _matrix(rng, small)
    steps = [f"x = {step}" for step in rng.sample(_CHAIN, rng.randint(3, 5))]
    return _Parts("", "\n".join([*steps, "return x"]), f"[torch.randn({rows}, {columns})]")


def _linear_tail(rng: random.Random, small: bool) -> _Parts:
    rows, columns = _matrix(rng, small)
    out = _columns(rng, small)
    tail = "\n".join(f"x = {step}" for step in rng.sample(_TAILS, rng.randint(1, 2)))
    return _Parts(f"self.linear = nn.Linear({columns}, {out})", f"x = self.linear(x)\n{tail}\nreturn x",
                  f"[torch.randn({rows}, {columns})]")  # fmt: skip


def _linear_reduce(rng: random.Random, small: bool) -> _Parts:
    rows, columns = _matrix(rng, small)
    out = _columns(rng, small)
    last = rng.choice(
        ("x.sum(dim=1, keepdim=True)", "x.mean(dim=1, keepdim=True)", "x.max(dim=1, keepdim=True).values")
    )
    return _Parts(f"self.linear = nn.Linear({columns}, {out})", f"x = self.linear(x)\nreturn {last}",
                  f"[torch.randn({rows}, {columns})]")  # fmt: skip


def _diagonal(rng: random.Random, small: bool) -> _Parts:
    rows, columns = _matrix(rng, small)
    side = rng.choice((True, False))
    call = "torch.diag(y) @ x" if side else "x @ torch.diag(y)"
    return _Parts(
        "", f"return {call}", f"[torch.randn({rows}, {columns}), torch.randn({rows if side else columns})]", ", y"
    )


def _layer_norm(rng: random.Random, small: bool) -> _Parts:
    rows, columns = _matrix(rng, small)
    forward = "mean = x.mean(dim=-1, keepdim=True)\nvar = ((x - mean) ** 2).mean(dim=-1, keepdim=True)\n"
    forward += "return (x - mean) / torch.sqrt(var + 1e-5) * self.weight + self.bias"
    init = f"self.weight = nn.Parameter(torch.ones({columns}))\nself.bias = nn.Parameter(torch.zeros({columns}))"
    return _Parts(init, forward, f"[torch.randn({rows}, {columns})]")


def _rms_norm(rng: random.Random, small: bool) -> _Parts:
    rows, columns = _matrix(rng, small)
    forward = "return x * torch.rsqrt((x * x).mean(dim=-1, keepdim=True) + 1e-6) * self.weight"
    return _Parts(f"self.weight = nn.Parameter(torch.ones({columns}))", forward, f"[torch.randn({rows}, {columns})]")


def _softmax(rng: random.Random, small: bool) -> _Parts:
    rows, columns = _matrix(rng, small)
    forward = "x = x - x.max(dim=-1, keepdim=True).values\ne = torch.exp(x)\nreturn e / e.sum(dim=-1, keepdim=True)"
    return _Parts("", forward, f"[torch.randn({rows}, {columns})]")


def _attention(rng: random.Random, small: bool) -> _Parts:
    batch, heads = rng.choice((1, 2)), rng.choice((2, 4, 8))
    length, width = _pick(rng, small, (48, 64, 96), (512, 1024, 2048)), rng.choice((32, 64))
    shape = f"{batch}, {heads}, {length}, {width}"
    forward = "scores = torch.matmul(x, y.transpose(-2, -1)) / (x.shape[-1] ** 0.5)\n"
    forward += "return torch.matmul(torch.softmax(scores, dim=-1), z)"
    return _Parts("", forward, f"[torch.randn({shape}), torch.randn({shape}), torch.randn({shape})]", ", y, z")


def _conv(rng: random.Random, small: bool) -> tuple[str, str, int]:
    channels, out = rng.choice((8, 16, 24)), rng.choice((16, 32, 48))
    side, batch = _pick(rng, small, (16, 20, 28), (56, 96, 128)), _pick(rng, small, (2, 4), (16, 32))
    size = rng.choice((1, 3))
    layer = f"nn.Conv2d({channels}, {out}, {size}, padding={size // 2})"
    return layer, f"[torch.randn({batch}, {channels}, {side}, {side})]", out


def _conv_norm(rng: random.Random, small: bool) -> _Parts:
    layer, inputs, out = _conv(rng, small)
    init = f"self.conv = {layer}\nself.norm = nn.BatchNorm2d({out})\nself.eval()"
    return _Parts(init, f"x = self.norm(self.conv(x))\nx = {rng.choice(_TAILS)}\nreturn x", inputs)


def _conv_pool(rng: random.Random, small: bool) -> _Parts:
    layer, inputs, _ = _conv(rng, small)
    pool = rng.choice(("F.avg_pool2d(x, 2)", "F.max_pool2d(x, 2)", "x.mean(dim=(2, 3))"))
    return _Parts(f"self.conv = {layer}", f"x = self.conv(x)\nx = {rng.choice(_TAILS)}\nreturn {pool}", inputs)


def _scan(rng: random.Random, small: bool) -> _Parts:
    rows, columns = _matrix(rng, small)
    call = rng.choice(
        ("torch.cumsum(x, dim=1)", "torch.cumsum(x.flip(1), dim=1).flip(1)", "torch.cumsum(x * y, dim=1)")
    )
    two = ", y" if "y" in call else ""
    inputs = f"[torch.randn({rows}, {columns})" + (f", torch.randn({rows}, {columns})]" if two else "]")
    return _Parts("", f"return {call}", inputs, two)


def _loss(rng: random.Random, small: bool) -> _Parts:
    rows, columns = _matrix(rng, small)
    call = rng.choice(
        ("((x - y) ** 2).mean(dim=-1)", "(x - y).abs().mean(dim=-1)", "1 - F.cosine_similarity(x, y, dim=-1)")
    )
    return _Parts("", f"return {call}", f"[torch.randn({rows}, {columns}), torch.randn({rows}, {columns})]", ", y")


def _gated(rng: random.Random, small: bool) -> _Parts:
    rows, columns = _matrix(rng, small)
    out = _columns(rng, small)
    init = f"self.gate = nn.Linear({columns}, {out}, bias=False)\nself.up = nn.Linear({columns}, {out}, bias=False)"
    return _Parts(init, "return F.silu(self.gate(x)) * self.up(x)", f"[torch.randn({rows}, {columns})]")


def _residual(rng: random.Random, small: bool) -> _Parts:
    rows, columns = _matrix(rng, small)
    init = f"self.first = nn.Linear({columns}, {2 * columns})\nself.second = nn.Linear({2 * columns}, {columns})"
    return _Parts(init, "return x + self.second(F.gelu(self.first(x)))", f"[torch.randn({rows}, {columns})]")


FAMILIES: dict[str, _Family] = {
    "elementwise_chain": _chain,
    "linear_tail": _linear_tail,
    "linear_reduce": _linear_reduce,
    "diagonal_matmul": _diagonal,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "softmax": _softmax,
    "attention": _attention,
    "conv_norm": _conv_norm,
    "conv_pool": _conv_pool,
    "scan": _scan,
    "loss": _loss,
    "gated_mlp": _gated,
    "residual_mlp": _residual,
}
