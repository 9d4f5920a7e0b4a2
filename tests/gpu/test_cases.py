"""Every judged pair of tests/cases gets the right answer on a CUDA device."""

from __future__ import annotations

import pytest

from tests.referee import warm

GROUPS = warm.groups("cuda")


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("group", GROUPS, ids=[group[0].name for group in GROUPS])
def test_cases_get_the_right_verdict(group: list[warm.Case]) -> None:
    assert warm.failures(group, "cuda") == {}
