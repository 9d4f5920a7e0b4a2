"""One name for each tensor operation, however it is written: `a * b`, `a.mul(b)`, `torch.multiply(a, b)`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_SAME = {
    "multiply": "mul",
    "__mul__": "mul",
    "divide": "div",
    "true_divide": "div",
    "__truediv__": "div",
    "truediv": "div",
    "subtract": "sub",
    "__sub__": "sub",
    "__add__": "add",
    "__matmul__": "matmul",
    "mm": "matmul",
    "bmm": "matmul",
    "mv": "matmul",
    "clip": "clamp",
    "absolute": "abs",
    "negative": "neg",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "special_softmax": "softmax",
    "__getitem__": "getitem",
    "greater": "gt",
    "less": "lt",
    "greater_equal": "ge",
    "less_equal": "le",
    "not_equal": "ne",
}
_SAME |= {f"__{word}__": word for word in ("eq", "ne", "gt", "lt", "ge", "le", "neg", "pow", "abs", "floordiv")}
_SWAPPED = {"__rsub__": "sub", "rsub": "sub", "__rdiv__": "div", "__rtruediv__": "div", "__rpow__": "pow"}
_SWAPPED |= {"__rmatmul__": "matmul", "__rmul__": "mul", "__radd__": "add"}
_QUERIES = {
    "size",
    "shape",
    "dim",
    "ndim",
    "dtype",
    "device",
    "numel",
    "nelement",
    "is_contiguous",
    "__len__",
}
_QUERIES |= {
    "requires_grad",
    "is_cuda",
    "is_floating_point",
    "stride",
    "element_size",
    "get_device",
    "__bool__",
}
_RANDOM = {
    "rand",
    "randn",
    "randint",
    "rand_like",
    "randn_like",
    "bernoulli",
    "multinomial",
    "normal",
    "randperm",
}
_DROPOUTS = {"dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"}


@dataclass(frozen=True, slots=True)
class Step:
    op: str
    args: tuple[Any, ...]  # operands in the order of the operator: `2 - x` is sub(2, x)
    kwargs: dict[str, Any]
    query: bool = False  # asks for a shape or dtype; computes nothing
    inplace: bool = False
    random: bool = False


def canonical(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Step:
    name = getattr(func, "__name__", type(func).__name__)
    if name == "__get__":  # a property of a tensor, such as x.T
        name = getattr(getattr(func, "__self__", None), "__name__", name)
    if name in _QUERIES:
        return Step(name, args, kwargs, query=True)
    if name in _SWAPPED and len(args) >= 2:
        return Step(_SWAPPED[name], (args[1], args[0], *args[2:]), kwargs)
    inplace = (
        (name.endswith("_") and not name.endswith("__"))
        or name in ("__setitem__", "__set__")
        or (name.startswith("__i") and name not in ("__invert__", "__index__", "__int__"))
        or bool(kwargs.get("inplace"))
        or kwargs.get("out") is not None
    )
    random = name in _RANDOM or (name in _DROPOUTS and bool(kwargs.get("training", True)))
    if name == "rrelu":
        random = bool(kwargs.get("training", False))
    return Step(_SAME.get(name, name), args, kwargs, inplace=inplace, random=random)
