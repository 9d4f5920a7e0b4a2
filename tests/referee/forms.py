"""Inputs and outputs of every form: each with a right candidate and a wrong one."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import indent

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


@dataclass(frozen=True)
class Form:
    """A reference as pieces of source. `right` is `forward` where empty; `wrong` must not pass."""

    name: str
    forward: str
    inputs: str
    wrong: str
    right: str = ""
    arguments: str = "x"
    init: str = "pass"
    before: str = ""  # at the module's top
    labels: tuple[str, ...] = ()  # the task must carry

    def _module(self, name: str, forward: str) -> str:
        body = indent(forward, " " * 8)
        init = f"    def __init__(self):\n        super().__init__()\n        {self.init}\n"
        call = f"    def forward(self, {self.arguments}):\n{body}\n"
        return f"{HEAD}{self.before}\n\nclass {name}(nn.Module):\n{init}\n{call}"

    @property
    def reference(self) -> str:
        return self._module("Model", self.forward) + f"\n\ndef get_inputs():\n    return {self.inputs}\n"

    def candidate(self, right: bool) -> str:
        return self._module("ModelNew", (self.right or self.forward) if right else self.wrong)


PLAIN = "[torch.randn(64, 64)]"

DTYPES = (
    Form("int64", "return x * 2", "[torch.randint(0, 100, (64, 64))]", "return x * 2 + (x == 5)"),
    Form("int64 past float's precision", "return x * x", "[torch.randint(-2**31, 2**31, (64, 64))]",
         "return (x.double() ** 2).long()"),
    Form("uint16", "return x.to(torch.int32) + 1", "[torch.randint(0, 999, (64, 64)).to(torch.uint16)]",
         "return x.to(torch.int32) + 2"),
    Form("bool", "return ~x", "[torch.rand(64, 64) > 0.5]", "return x"),
    Form("bool out", "return x > 0", PLAIN, "return x > 0.01"),
    Form("complex64", "return torch.fft.fft(x)", "[torch.randn(64, 64, dtype=torch.complex64)]",
         "return torch.fft.fft(x) * 1.001"),
    Form("complex64, conjugated as a view", "return (x * 2).conj()", "[torch.randn(64, 64, dtype=torch.complex64)]",
         "return x * 2", right="return (x.conj() * 2).resolve_conj()"),
    Form("negated as a view", "return (x * 2).conj().imag", "[torch.randn(64, 64, dtype=torch.complex64)]",
         "return (x * 2).imag", right="return x.imag * -2"),
    Form("conjugated in", "return x + 1", "[torch.randn(64, 64, dtype=torch.complex64).conj()]", "return x.conj() + 1"),
    Form("complex128", "return x * x", "[torch.randn(64, 64, dtype=torch.complex128)]",
         "return (x.to(torch.complex64) ** 2).to(torch.complex128)"),
    Form("float64", "return torch.sin(x)", "[torch.randn(64, 64, dtype=torch.float64)]",
         "return torch.sin(x.float()).double()"),
    Form("half", "return torch.softmax(x.float(), -1).half()", "[torch.randn(64, 64).half()]",
         "return torch.softmax(x.float() * 0.98, -1).half()"),
    Form("bfloat16", "return x @ x.t()", "[torch.randn(64, 64).bfloat16()]", "return (x @ x.t()) * 1.03"),
    Form("float8", "return (x.float() * 2).to(torch.float8_e4m3fn)", "[torch.randn(64, 64).to(torch.float8_e4m3fn)]",
         "return (x.float() * 2.3).to(torch.float8_e4m3fn)"),
    Form("float8 in", "return x.float() * 2", "[torch.randn(64, 64).to(torch.float8_e5m2)]",
         "return x.float() * 2.01"),
)  # fmt: skip

SHAPES = (
    Form("no dimensions in", "return x * y", "[torch.randn(()), torch.randn(100, 10)]", "return y * 1.0",
         arguments="x, y"),
    Form("no dimensions out", "return (x * x).sum()", PLAIN, "return (x * x).sum() * 1.001"),
    Form("size 0 beside another", "return x * 2, y * 2", "[torch.randn(0, 5), torch.randn(64, 64)]",
         "return x * 2, y * 2.01", arguments="x, y"),
    Form("size 0", "return x * 2", "[torch.randn(0, 5)]", "return x.reshape(5, 0)", labels=("constant_output",)),
    Form("transposed", "return x * 2", "[torch.randn(64, 128).t()]", "return (x * 2).t().reshape(x.shape)"),
    Form("expanded", "return x * 2", "[torch.randn(64, 1).expand(64, 128)]", "return x * 2 + 0.01"),
    Form("every second column", "return x.sum(1)", "[torch.randn(64, 256)[:, ::2]]", "return x[:, :-1].sum(1)"),
    Form("transposed out", "return x.t()", "[torch.randn(64, 32)]", "return x", right="return x.t().contiguous()"),
    Form("the same tensor twice", "return x + y", "(lambda t: [t, t])(torch.randn(64, 64))", "return x + x * 1.01",
         arguments="x, y"),
    Form("infinities", "return torch.log(x)", "[torch.relu(torch.randn(64, 64))]", "return torch.log(x + 1e-9)"),
    Form("NaN", "return torch.sqrt(x)", PLAIN, "return torch.nan_to_num(torch.sqrt(x))"),
    Form("tiny numbers", "return (x * 1e-12).sum(1)", PLAIN, "return torch.zeros(64)"),
    Form("always the same inputs", "return x * 3", "[torch.ones(64, 64)]", "return torch.full((64, 64), 3.0)"),
)  # fmt: skip

STRUCTURES = (
    Form("tuple", "return x + 1, x * 2", PLAIN, "return x + 1, x * 2.001"),
    Form("nested", 'return {"a": x + 1, "b": [x * 2, (x - 1,)]}', PLAIN,
         'return {"a": x + 1, "b": [x * 2, (x - 1.01,)]}'),
    Form("None out", "return x + 1, None", PLAIN, "return x + 1, 0"),
    Form("None in", "return x if m is None else x * m", "[torch.randn(64, 64), None]", "return x * 1.01",
         arguments="x, m"),
    Form("numbers out", "return x.sum(), x.shape[0], True", PLAIN, "return x.sum(), x.shape[0] + 1, True"),
    Form("a float out", "return float(x.sum())", PLAIN, "return float(x.sum()) * 1.01"),
    Form("a float beside a tensor", "return x.mean().item(), x * 1", PLAIN, "return 0.5, x * 1"),
    Form("string and number in", 'return x * k if mode == "times" else x', '[torch.randn(64, 64), "times", 3.0]',
         "return x * 3.01", arguments="x, mode, k"),
    Form("keywords", "return x * scale", '{"x": torch.randn(64, 64), "scale": 3.0}', "return x * 3.01",
         arguments="x, scale=1.0"),
    Form("a list in", "return torch.cat(xs)", "[[torch.randn(32, 16) for _ in range(3)]]",
         "return torch.cat(xs[::-1])", arguments="xs"),
    Form("a dict in", 'return d["a"] + d["b"]', '[{"a": torch.randn(32, 16), "b": torch.randn(32, 16)}]',
         'return d["a"] + d["a"]', arguments="d"),
    Form("an array of NumPy in", "return x * torch.from_numpy(a)",
         '[torch.randn(4, 4), __import__("numpy").ones((4, 4), dtype="float32")]', "return x * 1.01",
         arguments="x, a"),
    Form("a namedtuple", "return P(x + 1, x * 2)", PLAIN, "return P(x + 1, x * 2.01)",
         before='from collections import namedtuple\nP = namedtuple("P", "a b")'),
    Form("torch's own tuple", "return torch.sort(x, dim=-1)", PLAIN, "return torch.sort(x, dim=0)"),
    Form("nothing in", "return self.w * 2", "[]", "return self.w * 2.1", arguments="",
         init="self.w = nn.Parameter(torch.randn(64, 64))", labels=("constant_output",)),
)  # fmt: skip

STATE = (
    Form("inputs changed by the reference", "x.add_(1)\nreturn x * 2", PLAIN, "return (x + 1) * 2"),
    Form("the changed input returned", "return x.relu_()", PLAIN, "return x.relu()"),
    Form("the input returned", "return x", PLAIN, "return x * 1.01"),
    Form("one storage for several outputs", "y = x * 2\nreturn y, y.view(-1), y[0]", PLAIN,
         "y = x * 2\nreturn y, y.view(-1) * 1.01, y[0]"),
    Form("batch norm that trains", "return self.bn(x)", "[torch.randn(8, 8, 16, 16)]",
         "return F.batch_norm(x, None, None, self.bn.weight, self.bn.bias, True)", init="self.bn = nn.BatchNorm2d(8)"),
    Form("dropout", "return self.d(x)", PLAIN, "return x", init="self.d = nn.Dropout(0.5)"),
    Form("a counter", "self.n += 1\nreturn x + self.n", PLAIN, "return x + 1",
         init='self.register_buffer("n", torch.zeros(1))'),
    Form("a running mean", "self.m.mul_(0.9).add_(x.mean(0), alpha=0.1)\nreturn x - self.m", PLAIN,
         "return x - (self.m * 0.9 + 0.1 * x.mean(0))", init='self.register_buffer("m", torch.zeros(64))'),
    Form("a parameter returned", "return self.w * 1", PLAIN, "return self.w * 1.01",
         init="self.w = nn.Parameter(torch.randn(8, 8))", labels=("constant_output",)),
    Form("a recurrent layer's state", "return self.l(x)", "[torch.randn(5, 4, 16)]",
         "o, (h, c) = self.l(x)\nreturn o, (c, h)", init="self.l = nn.LSTM(16, 16)"),
)  # fmt: skip

GROUPS = {"dtypes": DTYPES, "shapes": SHAPES, "structures": STRUCTURES, "state": STATE}

# name -> (reference's forward, inputs, words of the refusal)
REFUSED = {
    "an object of its own": ("return P(x)", PLAIN, "cannot be compared"),
    "a sparse tensor": ("return x.to_sparse()", PLAIN, "layout"),
    "nothing": ("return None", PLAIN, "nothing that could be compared"),
    "inputs of another shape each time": ("return x", "[torch.randn(int(torch.randint(50, 900, (1,))), 8)]", "form"),
}
OBJECT = "class P:\n    def __init__(self, a):\n        self.a = a"
