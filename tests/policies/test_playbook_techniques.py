"""Each technique finds its pattern in every usual spelling, and what it writes is the same function."""

# ruff: noqa: E501 (each case is one line of a reference)

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.policies.playbook_cases import assert_same_function, candidate, forward_only, search_for

if TYPE_CHECKING:
    from pathlib import Path

X = "torch.randn(6, 8)"
IMAGE = "torch.randn(2, 3, 8, 8)"
BIG_IMAGE = "torch.randn(2, 3, 24, 24)"
SEQUENCE = "torch.randn(2, 5, 8)"
HEADS = ", ".join(["torch.randn(2, 3, 7, 4)"] * 3)
LINEAR = "self.linear = nn.Linear(8, 5)"
CONV = "self.conv = nn.Conv2d(3, 4, 3, padding=1)"

ALGEBRA = {
    "diag @": ("return torch.diag(x) @ y", "torch.randn(6), torch.randn(6, 4)", "pass"),
    "matmul(diag)": ("return torch.matmul(x.diag(), y)", "torch.randn(6), torch.randn(6, 4)", "pass"),
    "mm into a name": (
        "d = torch.diag(x); return torch.mm(d, y)",
        "torch.randn(6), torch.randn(6, 4)",
        "pass",
    ),
    "diag times vector": ("return torch.diag(x) @ y", "torch.randn(6), torch.randn(6)", "pass"),
    "@ diag": ("return x @ torch.diag(y)", "torch.randn(6, 4), torch.randn(4)", "pass"),
    "batch @ diag": ("return x @ torch.diag(y)", "torch.randn(2, 6, 4), torch.randn(4)", "pass"),
    "diag_embed": ("return torch.diag_embed(x) @ y", "torch.randn(3, 6), torch.randn(3, 6, 4)", "pass"),
    "@ diag_embed": ("return x @ torch.diag_embed(y)", "torch.randn(3, 6, 4), torch.randn(3, 4)", "pass"),
    "linear sum": ("return self.linear(x).sum(dim=1)", X, LINEAR),
    "linear sum keepdim": ("x = self.linear(x); return torch.sum(x, dim=-1, keepdim=True)", X, LINEAR),
    "linear mean": (
        "x = self.linear(x) - self.v; return torch.mean(x, dim=1)",
        X,
        f"{LINEAR}; self.v = nn.Parameter(torch.randn(5))",
    ),
    "linear scaled sum": ("x = self.linear(x) / 2; x = x + 3; x = x.sum(1); return x * 1.5", X, LINEAR),
    "three dimensions": ("return self.linear(x).sum(-1)", SEQUENCE, LINEAR),
    "weight.T": (
        "return (torch.matmul(x, self.w.T) / 2).sum(1, keepdim=True)",
        X,
        "self.w = nn.Parameter(torch.randn(5, 8))",
    ),
    "no bias": ("return F.linear(x, self.w).mean(-1)", X, "self.w = nn.Parameter(torch.randn(5, 8))"),
    "single elements": (
        "x = self.linear(x).sum(1, keepdim=True); x = torch.max(x, dim=1, keepdim=True)[0]; x = torch.logsumexp(x, dim=1, keepdim=True); return x",
        X,
        LINEAR,
    ),
    "relu twice": ("return F.leaky_relu(torch.relu(x), 0.1) + 1", X, "pass"),
    "clamp after tanh": ("return torch.clamp(torch.tanh(x), -1.0, 1.0)", X, "pass"),
    "scalars": ("y = x * 2; y = y / 3; y = y + y; return torch.tanh(y)", X, "pass"),
    "scaled residual": ("y = torch.exp(x); z = y.clone(); y = y * 0.5; return y + z", X, "pass"),
    "pools": (
        "return self.b(self.a(x))",
        "torch.randn(2, 3, 13, 12)",
        "self.a = nn.MaxPool2d(2); self.b = nn.MaxPool2d(3)",
    ),
    "average pools": (
        "return self.b(self.a(x))",
        "torch.randn(2, 3, 13, 12)",
        "self.a = nn.AvgPool2d(2); self.b = nn.AvgPool2d(2)",
    ),
    "transposed mean": (
        "x = self.up(x); x = x * 1.5; return torch.mean(x, dim=[2, 3], keepdim=True)",
        IMAGE,
        "self.up = nn.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1)",
    ),
    "transposed sum": ("return self.up(x).sum((2, 3))", IMAGE, "self.up = nn.ConvTranspose2d(3, 4, 3)"),
}

FOLDS = {
    "conv scale": ("return self.conv(x) * 0.5", BIG_IMAGE, CONV),
    "conv bias": (
        "return torch.relu(self.conv(x) + self.b)",
        BIG_IMAGE,
        f"{CONV}; self.b = nn.Parameter(torch.randn(4, 1, 1))",
    ),
    "conv minus number": (
        "x = self.conv(x); x = x - 0.5; return torch.tanh(x)",
        BIG_IMAGE,
        "self.conv = nn.Conv2d(3, 4, 3, bias=False)",
    ),
    "conv scale and shift": (
        "x = self.conv(x) + self.b; x = x * self.s; return torch.sigmoid(x / 3)",
        BIG_IMAGE,
        f"{CONV}; self.b = nn.Parameter(torch.randn(4, 1, 1)); self.s = nn.Parameter(torch.randn(4, 1, 1))",
    ),
    "one-element bias": (
        "return self.conv(x) + self.b",
        BIG_IMAGE,
        f"{CONV}; self.b = nn.Parameter(torch.randn(1, 1, 1))",
    ),
    "batch norm": ("return self.bn(self.conv(x))", BIG_IMAGE, f"{CONV}; self.bn = nn.BatchNorm2d(4).eval()"),
    "plain batch norm": (
        "return self.bn(self.conv(x))",
        BIG_IMAGE,
        "self.conv = nn.Conv2d(3, 4, 3, bias=False); self.bn = nn.BatchNorm2d(4, affine=False).eval()",
    ),
    "sequence of layers": (
        "return self.net(x)",
        BIG_IMAGE,
        "self.net = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4), nn.ReLU()).eval()",
    ),
    "grouped": (
        "return self.conv(x) * self.s",
        "torch.randn(4, 4, 16, 16)",
        "self.conv = nn.Conv2d(4, 8, 3, groups=2); self.s = nn.Parameter(torch.randn(8, 1, 1))",
    ),
    "transposed": (
        "return (self.up(x) + self.b) * 2.0",
        BIG_IMAGE,
        "self.up = nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1); self.b = nn.Parameter(torch.randn(4, 1, 1))",
    ),
    "transposed, per channel": (
        "return self.up(x) * self.s",
        BIG_IMAGE,
        "self.up = nn.ConvTranspose2d(3, 4, 2, stride=2); self.s = nn.Parameter(torch.randn(4, 1, 1))",
    ),
    "three dimensions": (
        "return self.conv(x) / 3",
        "torch.randn(2, 3, 9, 9, 9)",
        "self.conv = nn.Conv3d(3, 4, 3)",
    ),
    "linear scale": ("return torch.relu(self.linear(x) * 2 - 1)", "torch.randn(64, 8)", LINEAR),
    "linear bias": (
        "x = self.linear(x); x = x + self.b; return torch.relu(x)",
        X,
        "self.linear = nn.Linear(8, 5, bias=False); self.b = nn.Parameter(torch.randn(5))",
    ),
    "linear norm": (
        "return self.bn(self.linear(x))",
        "torch.randn(64, 8)",
        f"{LINEAR}; self.bn = nn.BatchNorm1d(5).eval()",
    ),
}

SPELLINGS = {
    "attention": (
        "s = x @ y.transpose(-2, -1) / math.sqrt(4); return torch.softmax(s, dim=-1) @ z",
        HEADS,
        "pass",
    ),
    "scaled query": (
        "s = torch.matmul(x * 0.5, y.mT); return torch.matmul(F.softmax(s, -1), z)",
        HEADS,
        "pass",
    ),
    "other scale": (
        "s = torch.matmul(x, y.permute(0, 1, 3, 2)) * 0.3; return torch.matmul(s.softmax(3), z)",
        HEADS,
        "pass",
    ),
    "causal": (
        "s = x @ y.transpose(2, 3); m = torch.tril(torch.ones(7, 7)); s = s.masked_fill(m == 0, float('-inf')); return torch.softmax(s, -1) @ z",
        HEADS,
        "pass",
    ),
    "mask from a buffer": (
        "s = x @ y.transpose(2, 3) * 0.5; s = s.masked_fill(self.m[:7, :7] == 0, float('-inf')); return torch.softmax(s, -1) @ z",
        HEADS,
        "self.register_buffer('m', torch.tril(torch.ones(9, 9).int()))",
    ),
    "softmax module": (
        "return self.drop(self.soft(x @ y.transpose(-2, -1))) @ z",
        HEADS,
        "self.soft = nn.Softmax(dim=-1); self.drop = nn.Dropout(0.0)",
    ),
    "three-dimensional": (
        "return torch.bmm(torch.softmax(torch.bmm(x, y.transpose(1, 2)), 2), z)",
        ", ".join(["torch.randn(2, 7, 4)"] * 3),
        "pass",
    ),
    "added mask": (
        "return torch.softmax(x @ y.mT * 0.5 + self.m, -1) @ z",
        HEADS,
        "self.m = nn.Parameter(torch.randn(7, 7))",
    ),
    "layer norm": (
        "m = x.mean(-1, keepdim=True); v = x.var(-1, unbiased=False, keepdim=True); return (x - m) / torch.sqrt(v + 1e-5)",
        X,
        "pass",
    ),
    "layer norm, two sums": (
        "m = x.mean(dim=-1, keepdim=True); v = ((x - m) ** 2).mean(dim=-1, keepdim=True); return self.g * (x - m) * torch.rsqrt(v + 1e-5) + self.b",
        X,
        "self.g = nn.Parameter(torch.ones(8)); self.b = nn.Parameter(torch.zeros(8))",
    ),
    "layer norm, affine": (
        "m = x.mean(dim=(1, 2), keepdim=True); d = x - m; v = (d * d).mean(dim=(1, 2), keepdim=True); return d / (v + 1e-6) ** 0.5",
        SEQUENCE,
        "pass",
    ),
    "rms norm": ("return x / torch.sqrt(torch.mean(x ** 2, dim=-1, keepdim=True) + 1e-6)", X, "pass"),
    "rms norm, weight": (
        "n = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6); return self.g * n",
        X,
        "self.g = nn.Parameter(torch.ones(8))",
    ),
    "tanh gelu": (
        "return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))",
        X,
        "pass",
    ),
    "tanh gelu, factored": (
        "return x * 0.5 * (1 + torch.tanh(0.7978845608 * x * (1 + 0.044715 * x * x)))",
        X,
        "pass",
    ),
    "erf gelu": ("return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))", X, "pass"),
    "silu": ("return x * torch.sigmoid(x)", X, "pass"),
    "silu module": ("y = x + 1; return self.s(y) * y", X, "self.s = nn.Sigmoid()"),
    "silu by exp": ("return x / (1 + torch.exp(-x))", X, "pass"),
    "mish": ("return torch.multiply(torch.tanh(F.softplus(x)), x)", X, "pass"),
    "hard swish": ("return x * torch.clamp((x + 3) / 6, 0, 1)", X, "pass"),
    "sigmoid": ("return 1 / (1 + torch.exp(-x))", X, "pass"),
    "softmax": ("e = torch.exp(x); return e / e.sum(dim=1, keepdim=True)", X, "pass"),
    "shifted softmax": (
        "e = torch.exp(x - x.max(dim=0, keepdim=True)[0]); return e / torch.sum(e, 0, keepdim=True)",
        X,
        "pass",
    ),
    "logsumexp": ("return torch.log(torch.sum(torch.exp(x), dim=1))", X, "pass"),
}

CASES = [
    pytest.param(technique, *case, id=f"{technique}: {name}")
    for technique, cases in (
        ("algebraic simplification", ALGEBRA),
        ("folded layers", FOLDS),
        ("library operations", SPELLINGS),
    )
    for name, case in cases.items()
]


@pytest.mark.parametrize(("technique", "forward", "inputs", "init"), CASES)
def test_pattern_is_found_and_the_candidate_is_the_same_function(
    tmp_path: Path, technique: str, forward: str, inputs: str, init: str
) -> None:
    search = search_for(tmp_path, forward_only(forward, inputs, init))
    source = candidate(search, technique)
    assert source is not None
    assert_same_function(search, source)


def test_in_place_steps_leave_inputs_and_earlier_outputs_alone(tmp_path: Path) -> None:
    forward = "y = self.linear(x); y = torch.relu(y); y = y * 2 + x; return torch.clamp(y, min=-1.0, max=1.0)"
    search = search_for(tmp_path, forward_only(forward, "torch.randn(256, 256)", "self.linear = nn.Linear(256, 256)"))
    source = candidate(search, "in-place memory")
    assert source is not None
    assert "relu_" in source
    assert_same_function(search, source)


def test_channels_last_changes_order_in_memory_only(tmp_path: Path) -> None:
    search = search_for(tmp_path, forward_only("return torch.relu(self.conv(x))", IMAGE, CONV))
    source = candidate(search, "memory layout")
    assert source is not None
    assert "channels_last" in source
    assert_same_function(search, source)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_a_stepped_cell_becomes_one_call(tmp_path: Path, kind: str) -> None:
    state = "h, c = self.cell(x[:, t], (h, c))" if kind == "LSTM" else "h = self.cell(x[:, t], h)"
    body = f"""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.{kind}Cell(5, 4)

        def forward(self, x, h, c):
            states = []
            for t in range(x.shape[1]):
                {state}
                states.append(h)
            return torch.stack(states, dim=1), h

    def get_inputs():
        return [torch.randn(3, 6, 5), torch.randn(3, 4), torch.randn(3, 4)]

    def get_init_inputs():
        return []
    """
    search = search_for(tmp_path, body)
    source = candidate(search, "library operations")
    assert source is not None
    assert f"torch.{kind.lower()}(" in source
    assert_same_function(search, source)


def test_techniques_combine(tmp_path: Path) -> None:
    forward = "y = self.conv(x) * 0.5; y = y * torch.sigmoid(y); return y"
    search = search_for(tmp_path, forward_only(forward, "torch.randn(2, 3, 64, 64)", CONV))
    source = candidate(search, "folded layers", "library operations", "memory layout")
    assert source is not None
    assert "silu" in source
    assert_same_function(search, source)


def test_fusion_decorates_forward_and_nothing_else(tmp_path: Path) -> None:
    search = search_for(tmp_path, forward_only("return torch.tanh(x) * 2", X))
    source = candidate(search, "operation fusion")
    assert source is not None
    assert source.replace("    @torch.compile(fullgraph=True, dynamic=False)\n", "").count("torch.compile") == 0
    assert "return torch.tanh(x) * 2" in source


def test_fusion_keeps_the_reference_s_random_numbers(tmp_path: Path) -> None:
    search = search_for(tmp_path, forward_only("return self.drop(x) * 2", X, "self.drop = nn.Dropout(0.5)"))
    source = candidate(search, "operation fusion")
    assert source is not None
    assert "fallback_random" in source


def test_a_recorded_graph_is_offered_on_a_gpu_only(tmp_path: Path) -> None:
    reference = forward_only("return torch.tanh(self.linear(x))", X, LINEAR)
    assert candidate(search_for(tmp_path, reference), "CUDA graphs") is None
    search = search_for(tmp_path, reference, device="cuda:0")
    source = candidate(search, "CUDA graphs")
    assert source is not None
    assert_same_function(search, source)  # without a GPU it computes step by step
