"""Runs with scripted parts that live in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from cudal1_core.archive import Archive
from cudal1_core.paths import RunFolder

from tests.unit.scripted import Bench, ScriptedPolicy, ScriptedReferee


@pytest.fixture
def make_bench() -> Iterator[Callable[[], Bench]]:
    archives: list[Archive] = []

    def make() -> Bench:
        archives.append(Archive())
        return Bench(RunFolder("r1", None), archives[-1], ScriptedReferee(), ScriptedPolicy([]))

    yield make
    for archive in archives:
        archive.close()


@pytest.fixture
def bench(make_bench: Callable[[], Bench]) -> Bench:
    return make_bench()
