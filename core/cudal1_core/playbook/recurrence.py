"""An LSTM or GRU cell stepped through a sequence becomes one call for the whole sequence."""

from __future__ import annotations

import operator
from itertools import pairwise
from typing import Any

import torch
from torch import fx, nn

from cudal1_core.playbook.graphs import Editor, argument, is_op, shape, value
from cudal1_core.playbook.rules import Rule
from cudal1_core.playbook.technique import Finding

FEWEST_STEPS = 4


def _cell(node: Any) -> Any:
    """The LSTM or GRU cell with biases that a node calls with a state, else None."""
    if not isinstance(node, fx.Node) or node.op != "call_module" or len(node.args) != 2 or node.kwargs:
        return None
    module = node.meta["module"]
    return module if type(module) in (nn.LSTMCell, nn.GRUCell) and module.bias else None


def _step_of(node: Any) -> tuple[fx.Node, int, int] | None:
    """(sequence, time dimension, time) of x[:, t] or x[t]; time is dimension 1 or 0."""
    if is_op(node, "select"):
        dim, index = argument(node, 1, "dim"), argument(node, 2, "index")
    elif is_op(node, "getitem") and value(node) is not None:
        key = node.args[1]
        if type(key) is int:
            dim, index = 0, key
        elif isinstance(key, tuple) and _whole(key[0]) and type(key[1]) is int and all(map(_whole, key[2:])):
            dim, index = 1, key[1]
        else:
            return None
    else:
        return None
    source = node.args[0]
    usable = isinstance(source, fx.Node) and value(source) is not None and len(shape(source)) == 3
    return (source, dim, index) if usable and type(index) is int and dim in (0, 1) else None


def _whole(part: Any) -> bool:
    return part is ... or (isinstance(part, slice) and part == slice(None))


def change(node: fx.Node, edit: Editor) -> fx.Node | None:
    if edit.on_cuda or not is_op(node, "stack") or not isinstance(node.args[0], (list, tuple)):
        return None  # on a GPU the library's recurrent kernels may round to TF32 where the cell does not
    steps = [_hidden_of(item) for item in node.args[0]]
    if len(steps) < FEWEST_STEPS or any(step is None for step in steps):
        return None
    cells: list[fx.Node] = [step for step in steps if step is not None]
    module = _cell(cells[0])
    times = [_step_of(cell.args[0]) for cell in cells]
    first = times[0]
    dim = argument(node, 1, "dim", 0)
    if module is None or first is None or dim != first[1]:
        return None
    if shape(first[0])[dim] != len(cells) or times != [(first[0], dim, t) for t in range(len(cells))]:
        return None
    for before, after in pairwise(cells):
        if _cell(after) is not module or not _follows(after.args[1], before, module):
            return None
    return _build(edit, node, cells, module, first[0], dim)


def _hidden_of(item: Any) -> fx.Node | None:
    """The cell call whose hidden state this is."""
    if is_op(item, "getitem") and item.args[1] == 0 and isinstance(_cell(item.args[0]), nn.LSTMCell):
        return item.args[0]  # type: ignore[no-any-return]
    return item if isinstance(_cell(item), nn.GRUCell) else None


def _follows(state: Any, before: fx.Node, module: nn.Module) -> bool:
    if isinstance(module, nn.GRUCell):
        return state is before
    parts = state if isinstance(state, (tuple, list)) and len(state) == 2 else (None, None)
    return all(is_op(p, "getitem") and p.args == (before, i) for i, p in enumerate(parts))


def _build(
    edit: Editor, node: fx.Node, cells: list[fx.Node], module: Any, sequence: fx.Node, dim: int
) -> fx.Node | None:
    last, stacked = cells[-1], {node, *cells}
    for cell in cells[:-1]:
        parts = cell.users if isinstance(module, nn.LSTMCell) else {cell: None}
        if any(user not in stacked for part in parts for user in part.users):
            return None  # an inner state is read elsewhere
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    weights = [edit.weight(cells[0], name) for name in names]
    state: Any = cells[0].args[1]
    layers = (
        True,
        1,
        0.0,
        False,
        False,
        dim == 1,
    )  # biases, layers, dropout, training, both ways, batch first
    if isinstance(module, nn.GRUCell):
        if len(shape(state)) != 2:
            return None
        result = edit.call(torch.gru, sequence, edit.call(torch.Tensor.unsqueeze, state, 0), weights, *layers)
    else:
        if not isinstance(state, (tuple, list)) or any(len(shape(part)) != 2 for part in state):
            return None
        start = tuple(edit.call(torch.Tensor.unsqueeze, part, 0) for part in state)
        result = edit.call(torch.lstm, sequence, start, weights, *layers)
    result.meta["hint"] = "states"
    _hand_on(edit, last, node, module, result)
    return edit.call(operator.getitem, result, 0)


def _hand_on(edit: Editor, last: fx.Node, node: fx.Node, module: Any, result: fx.Node) -> None:
    """Later readers of the last state read it from the result."""
    outputs = list(last.users) if isinstance(module, nn.LSTMCell) else [last]
    for output in outputs:
        index = 1 + (output.args[1] if isinstance(module, nn.LSTMCell) else 0)  # type: ignore[operator]
        readers = [user for user in output.users if user is not node]
        if readers:
            final = edit.call(operator.getitem, edit.call(operator.getitem, result, index), 0)
            for reader in readers:
                reader.replace_input_with(output, final)


RULE = Rule(
    change,
    Finding(
        "A recurrent cell is called once for every time step from Python: many small products and "
        "launches, and the "
        "part that does not depend on the state is never done for all steps at once.",
        "One library call runs the whole sequence with the cell's own weights: the input projection is "
        "one large product "
        "and only the recurrent part remains step by step. Order and equations are the same.",
    ),
)
