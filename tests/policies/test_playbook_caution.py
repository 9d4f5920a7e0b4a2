"""What only looks like a pattern is left alone, and references that cannot be traced are still helped."""

# ruff: noqa: E501 (each case is one line of a reference)

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.policies.playbook_cases import assert_same_function, candidate, forward_only, search_for

if TYPE_CHECKING:
    from pathlib import Path

X = "torch.randn(6, 8)"
IMAGE = "torch.randn(2, 3, 8, 8)"
HEADS = ", ".join(["torch.randn(2, 3, 4, 4)"] * 3)
LINEAR = "self.linear = nn.Linear(8, 8)"

LOOKALIKES = {
    "softmax over the queries": (
        "s = x @ y.transpose(-2, -1); return torch.softmax(s, dim=-2) @ z",
        HEADS,
        "pass",
    ),
    "product without the transpose of keys, then dropout": (
        "s = self.d(torch.softmax(x @ y.mT, -1)); return s @ z",
        HEADS,
        "self.d = nn.Dropout(0.3)",
    ),
    "scores are returned too": ("s = torch.softmax(x @ y.mT, -1); return s @ z, s", HEADS, "pass"),
    "fill with a large number": (
        "s = (x @ y.mT).masked_fill(x == 0, -100.0); return torch.softmax(s, -1) @ z",
        HEADS,
        "pass",
    ),
    "unbiased variance": (
        "m = x.mean(-1, keepdim=True); v = x.var(-1, keepdim=True); return (x - m) / torch.sqrt(v + 1e-5)",
        X,
        "pass",
    ),
    "epsilon outside the root": (
        "m = x.mean(-1, keepdim=True); v = x.var(-1, unbiased=False, keepdim=True); return (x - m) / (torch.sqrt(v) + 1e-5)",
        X,
        "pass",
    ),
    "norm over the first dimension": (
        "m = x.mean(0, keepdim=True); v = x.var(0, unbiased=False, keepdim=True); return (x - m) / torch.sqrt(v + 1e-5)",
        X,
        "pass",
    ),
    "mean of another tensor": (
        "m = y.mean(-1, keepdim=True); v = x.var(-1, unbiased=False, keepdim=True); return (x - m) / torch.sqrt(v + 1e-5)",
        f"{X}, {X}",
        "pass",
    ),
    "rms of another tensor": (
        "return x / torch.sqrt(torch.mean(y ** 2, dim=-1, keepdim=True) + 1e-6)",
        f"{X}, {X}",
        "pass",
    ),
    "another GELU constant": (
        "return 0.5 * x * (1.0 + torch.tanh(0.7978845608 * (x + 0.0447 * x ** 3)))",
        X,
        "pass",
    ),
    "another GELU root": (
        "return 0.5 * x * (1.0 + torch.tanh(0.79788 * (x + 0.044715 * x ** 3)))",
        X,
        "pass",
    ),
    "sigmoid with a slope": ("return x * torch.sigmoid(1.702 * x)", X, "pass"),
    "gate of another tensor": ("return x * torch.sigmoid(y)", f"{X}, {X}", "pass"),
    "softplus with beta": ("return x * torch.tanh(F.softplus(x, beta=2))", X, "pass"),
    "hard swish with two": ("return x * torch.clamp((x + 2) / 6, 0, 1)", X, "pass"),
    "softmax with other sum": ("e = torch.exp(x); return e / e.sum(dim=1)", "torch.randn(8, 8)", "pass"),
    "softmax without all": ("e = torch.exp(x); return e / (1 + e.sum(dim=1, keepdim=True))", X, "pass"),
    "sum over the batch": ("return self.linear(x).sum(dim=0)", X, LINEAR),
    "sum after an activation": ("return torch.relu(self.linear(x)).sum(dim=1)", X, LINEAR),
    "sum of weights times outputs": (
        "return (self.linear(x) * self.v).sum(dim=1)",
        X,
        f"{LINEAR}; self.v = nn.Parameter(torch.randn(8))",
    ),
    "linear output used twice": ("y = self.linear(x); return y.sum(1, keepdim=True) + y", X, LINEAR),
    "diagonal of a matrix": ("return torch.diag(x) * y", "torch.randn(6, 6), torch.randn(6)", "pass"),
    "another diagonal": ("return torch.diag(x, 1) @ y", "torch.randn(5), torch.randn(6, 4)", "pass"),
    "batch norm in training": (
        "return self.bn(self.conv(x))",
        IMAGE,
        "self.conv = nn.Conv2d(3, 4, 3); self.bn = nn.BatchNorm2d(4)",
    ),
    "bias per position": (
        "return self.conv(x) + self.b",
        IMAGE,
        "self.conv = nn.Conv2d(3, 4, 3); self.b = nn.Parameter(torch.randn(6, 6))",
    ),
    "conv with reflection": (
        "return self.conv(x) * 2",
        IMAGE,
        "self.conv = nn.Conv2d(3, 4, 3, padding=1, padding_mode='reflect')",
    ),
    "grouped transposed": (
        "return self.up(x) * 2",
        "torch.randn(2, 4, 8, 8)",
        "self.up = nn.ConvTranspose2d(4, 4, 3, groups=2)",
    ),
    "overlapping pools": (
        "return self.b(self.a(x))",
        "torch.randn(2, 3, 12, 12)",
        "self.a = nn.MaxPool2d(3, stride=2); self.b = nn.MaxPool2d(2)",
    ),
    "padded transposed mean": (
        "return self.up(x).mean((2, 3))",
        IMAGE,
        "self.up = nn.ConvTranspose2d(3, 4, 3, padding=1)",
    ),
    "relu of a leaky relu": ("return torch.relu(F.leaky_relu(x, 0.1))", X, "pass"),
    "narrower clamp": ("return torch.clamp(torch.tanh(x), -0.5, 0.5)", X, "pass"),
    "weights hooked": (
        "return self.linear(x).sum(1)",
        X,
        "self.linear = torch.nn.utils.parametrizations.weight_norm(nn.Linear(8, 8))",
    ),
}

EXACT = ("algebraic simplification", "folded layers", "library operations")


@pytest.mark.parametrize(("forward", "inputs", "init"), LOOKALIKES.values(), ids=LOOKALIKES)
def test_lookalikes_are_left_alone(tmp_path: Path, forward: str, inputs: str, init: str) -> None:
    search = search_for(tmp_path, forward_only(forward, inputs, init))
    assert [name for name in EXACT if candidate(search, name) is not None] == []


def test_in_place_never_writes_to_what_others_read(tmp_path: Path) -> None:
    big = "torch.randn(256, 256)"
    forward = "y = self.linear(x); z = y.view(-1, 2, 256); w = torch.relu(y); return w + z.sum() + y.t()"
    search = search_for(tmp_path, forward_only(forward, big, "self.linear = nn.Linear(256, 256)"))
    source = candidate(search, "in-place memory")
    assert source is None or "relu_" not in source


def test_values_decide_the_path_so_only_wrapping_is_offered(tmp_path: Path) -> None:
    forward = "y = torch.tanh(x) * torch.sigmoid(x); y = y if bool(x.sum() > 0) else -y; return y * 2 * 3"
    search = search_for(tmp_path, forward_only(forward, X))
    assert search.subject.whole is None
    made = candidate(search, "operation fusion")
    assert made is not None
    assert "fullgraph" not in made
    assert candidate(search, "algebraic simplification") is None


def test_buffers_written_in_forward_are_not_rewritten(tmp_path: Path) -> None:
    forward = "self.count.add_(1); return x * 2 / 3 + self.count"
    search = search_for(tmp_path, forward_only(forward, X, "self.register_buffer('count', torch.zeros(1))"))
    assert candidate(search, "algebraic simplification") is None


def test_instances_that_differ_are_left_alone(tmp_path: Path) -> None:
    body = """
    class Block(nn.Module):
        def __init__(self, first):
            super().__init__()
            self.first = first

        def forward(self, x):
            if self.first:
                return x * 2 / 3 * 4
            return x * torch.sigmoid(x)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Block(True), Block(False)])

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    def get_inputs():
        return [torch.randn(4, 4)]

    def get_init_inputs():
        return []
    """
    search = search_for(tmp_path, body)
    assert [name for name in EXACT if candidate(search, name) is not None] == []


def test_sizes_are_not_baked_in(tmp_path: Path) -> None:
    forward = "b, c, h, w = x.shape; y = x.view(b, c, h * w); return (y * torch.sigmoid(y)).view(b, c, h, w)"
    search = search_for(tmp_path, forward_only(forward, IMAGE))
    source = candidate(search, "library operations")
    assert source is not None
    assert_same_function(search, source)
    module: dict[str, object] = {}
    exec(source, module)
    import torch

    other = torch.randn(5, 2, 3, 4)
    assert torch.allclose(module["ModelNew"]()(other), other * torch.sigmoid(other))  # type: ignore[operator]


def test_what_the_class_needs_stays_and_what_it_does_not_goes(tmp_path: Path) -> None:
    body = """
    scale = 3.0
    batch = 4
    torch.manual_seed(0)

    def helper(x):
        return x * torch.sigmoid(x)

    class Model(nn.Module):
        def __init__(self, by: float = scale):
            super(Model, self).__init__()
            self.by = by

        def forward(self, x):
            '''Says what it does.'''
            return helper(x) * self.by  # kept

    def get_inputs():
        return [torch.randn(batch, 4)]

    def get_init_inputs():
        return []

    if __name__ == "__main__":
        print(Model()(*get_inputs()))
    """
    search = search_for(tmp_path, body)
    source = candidate(search, "library operations")
    assert source is not None
    assert "scale = 3.0" in source
    assert "super(ModelNew, self)" in source
    assert "Says what it does." in source
    assert "self.by" in source.split("def forward")[1]
    assert "batch" not in source
    assert "__main__" not in source
    assert "get_inputs" not in source
    assert_same_function(search, source)


@pytest.mark.parametrize(
    "forward",
    [
        "    def forward(self, x): return x * torch.sigmoid(x)",
        "\tdef forward(self, x):\n\t\treturn x * torch.sigmoid(x)",
    ],
    ids=["on one line", "with tabs"],
)
@pytest.mark.parametrize("technique", ["library operations", "operation fusion"])
def test_layout_of_the_person_s_file_does_not_matter(tmp_path: Path, forward: str, technique: str) -> None:
    makers = "def get_inputs():\n    return [torch.randn(3, 4)]\n\ndef get_init_inputs():\n    return []\n"
    search = search_for(tmp_path, f"class Model(nn.Module):\n{forward}\n\n{makers}")
    source = candidate(search, technique)
    assert source is not None
    if technique == "library operations":
        assert_same_function(search, source)


@pytest.mark.parametrize(
    "store", ["self.last = x", "self.seen.append(x.shape)", "self.table['x'] = x", "self.count += 1"]
)
def test_a_forward_that_keeps_state_is_not_rewritten(tmp_path: Path, store: str) -> None:
    init = "self.seen = []; self.table = {}; self.count = 0"
    search = search_for(tmp_path, forward_only(f"{store}; return x * torch.sigmoid(x)", X, init), device="cuda:0")
    assert [name for name in (*EXACT, "CUDA graphs") if candidate(search, name) is not None] == []


@pytest.mark.parametrize(
    ("forward", "init"),
    [
        ("return self.conv(x).view(2, -1)", "self.conv = nn.Conv2d(3, 4, 3)"),
        ("return self.norm(self.conv(x))", "self.conv = nn.Conv2d(3, 4, 3); self.norm = nn.GroupNorm(2, 4)"),
        ("return self.norm(self.conv(x))", "self.conv = nn.Conv2d(3, 4, 3); self.norm = nn.BatchNorm2d(4)"),
    ],
    ids=["a view", "group norm", "batch norm in training"],
)
def test_channels_last_is_not_offered_where_it_breaks_or_loses_digits(tmp_path: Path, forward: str, init: str) -> None:
    assert candidate(search_for(tmp_path, forward_only(forward, IMAGE, init)), "memory layout") is None


@pytest.mark.parametrize(
    ("forward", "init"),
    [
        ("return torch.relu(self.conv(x))", "self.conv = nn.Conv2d(3, 4, 3)"),
        ("return F.conv2d(x, self.w)", "self.w = nn.Parameter(torch.randn(4, 3, 3, 3))"),
    ],
    ids=["layer", "function"],
)
def test_fused_convolutions_keep_their_order_on_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forward: str, init: str
) -> None:
    monkeypatch.setattr("cudal1_core.playbook.fusion.compiler_found", lambda subject: True)
    search = search_for(tmp_path, forward_only(forward, IMAGE, init), device="cuda:0")
    assert "'layout_optimization': False" in (candidate(search, "operation fusion") or "")
    assert candidate(search, "searched fusion") is None


def test_another_kernel_on_a_gpu_may_not_round_to_tf32(tmp_path: Path) -> None:
    reference = forward_only("return torch.relu(self.conv(x))", IMAGE, "self.conv = nn.Conv2d(3, 4, 3)")
    search = search_for(tmp_path, reference, device="cuda:0")
    for names in (("memory layout",), ("convolution search",), ("memory layout", "convolution search")):
        assert (candidate(search, *names) or "").count("torch.backends.cudnn.allow_tf32 = False") == 1
