"""Outputs read from a stopped process: every stride, what has no name, what cannot be read."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
import torch
from cudal1_core.referee import arena
from cudal1_core.referee.layout import lay_out, leaf_of
from cudal1_core.referee.naming import Names, table_bytes

BASE = torch.arange(24, dtype=torch.float32).reshape(4, 6)
COMPLEX = torch.complex(BASE, BASE + 1)


@pytest.fixture
def mine() -> Iterator[int]:
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    yield memory
    os.close(memory)


def named(tensor: torch.Tensor, like: torch.Tensor | None = None) -> tuple[Names, arena.Arena, list[torch.Tensor]]:
    slots = lay_out((leaf_of(tensor if like is None else like, contiguous=True),), 2)
    names = Names.over(slots, arena.create("cpu", table_bytes(slots)))
    return names, arena.alone("cpu", slots.nbytes), names.write(1, [tensor])


@pytest.mark.parametrize(
    "tensor",
    [
        BASE,
        BASE.t(),
        BASE[:, 1],
        BASE[1:3, ::2],
        BASE[:1].expand(4, 6),
        torch.tensor(3.5),
        BASE > 3,
        BASE.to(torch.bfloat16),
        BASE.to(torch.float8_e4m3fn),
        COMPLEX,
        COMPLEX.conj(),
        COMPLEX.conj().imag,
        torch.zeros(0, 5),
        torch.rand(2, 100_000)[:, ::50_000],
    ],
    ids=lambda tensor: f"{tensor.dtype}-{tuple(tensor.shape)}-{tensor.stride()}",
)
def test_what_is_named_is_read(mine: int, tensor: torch.Tensor) -> None:
    names, into, _held = named(tensor)
    names.read(mine, 1, into)
    assert torch.equal(names.slots.views(into, 1)[0].to(torch.complex128), tensor.to(torch.complex128))
    assert not names.slots.views(into, 0)[0].to(torch.complex128).count_nonzero()


@pytest.mark.parametrize("tensor", [BASE.double(), BASE[:2], BASE.to_sparse()], ids=["dtype", "shape", "layout"])
def test_what_has_not_the_right_form_has_no_name(mine: int, tensor: torch.Tensor) -> None:
    names, into, held = named(tensor, BASE)
    assert not held
    names.read(mine, 1, into)
    assert not torch.equal(names.slots.views(into, 1)[0], BASE)


@pytest.mark.parametrize("row", [[1], [1 << 62], [-4096, 1 << 40, 1], [-4096, -1, 1]])
def test_a_name_that_leads_nowhere_is_an_error(mine: int, row: list[int]) -> None:
    names, into, _held = named(BASE)
    for column, value in enumerate(row, names.width):
        names.table[column] = value
    with pytest.raises(OSError):  # noqa: PT011
        names.read(mine, 1, into)


def test_the_memory_of_a_stopped_process_can_be_read() -> None:
    slots = lay_out((leaf_of(BASE),), 1)
    table, into = arena.create("cpu", table_bytes(slots)), arena.alone("cpu", slots.nbytes)
    names = Names.over(slots, table)
    ready, done = os.pipe()
    child = os.fork()
    if child == 0:
        only_there = BASE * 2
        names.write(0, [only_there])
        os.write(done, b".")
        signal.pause()
    try:
        os.read(ready, 1)
        os.kill(child, signal.SIGSTOP)
        memory = os.open(f"/proc/{child}/mem", os.O_RDONLY)
        names.read(memory, 0, into)
        os.close(memory)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert torch.equal(slots.views(into, 0)[0], BASE * 2)
