"""Cores set aside for a GPU never take the last ones from everything else, nor share a physical core."""

from __future__ import annotations

import os

import pytest
from cudal1_core.referee import cores


@pytest.fixture(autouse=True)
def _pairs_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cores n and n+8 are threads of one physical core, as on many servers."""
    monkeypatch.setattr(cores, "siblings", lambda core: {(core + 8) % 16})


def test_small_machines_keep_all_their_cores() -> None:
    assert cores.set_aside(0, {0, 1, 2}).none


def test_two_cores_and_the_other_thread_of_the_first_are_kept_free() -> None:
    found = cores.set_aside(0, set(range(16)))
    assert found.launching == 15
    assert found.trusted == 14
    assert not {15, 14, 7} & set(found.rest)
    assert len(found.rest) == 13


def test_each_gpu_has_cores_of_its_own() -> None:
    first, second = cores.set_aside(0, set(range(16))), cores.set_aside(1, set(range(16)))
    assert not {first.launching, first.trusted} & {second.launching, second.trusted}


def test_more_gpus_than_cores_share_them() -> None:
    found = [cores.set_aside(gpu, set(range(4))) for gpu in range(8)]
    assert all(one.none or one.rest for one in found)


def test_a_thread_stays_on_its_core_and_is_let_go() -> None:
    before = os.sched_getaffinity(0)
    core = min(before)
    with cores.on_core(core):
        assert os.sched_getaffinity(0) == {core}
    assert os.sched_getaffinity(0) == before
    with cores.on_core(None):
        assert os.sched_getaffinity(0) == before
