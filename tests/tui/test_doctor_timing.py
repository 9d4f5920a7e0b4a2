"""The doctor's look at timing: chains of a length that is aimed at, and the table."""

from __future__ import annotations

import pytest

from cudal1_tui.commands.doctor_timing import MOST_ELEMENTS, SMALL, Length, chain, table

LARGE = 1 << 18


def test_a_chain_is_as_long_as_the_two_that_were_timed_say() -> None:
    elements, times = chain(1.0, 0.01, 0.01 + (LARGE - SMALL) * 1e-6, LARGE)
    assert times == 1
    assert elements == pytest.approx(0.99 / 1e-6, rel=0.01)


def test_no_chain_is_shorter_than_its_launches() -> None:
    assert chain(0.01, 0.05, 0.06, LARGE) == (SMALL, 1)


def test_a_quick_device_gets_more_steps_instead_of_more_memory() -> None:
    elements, times = chain(10.0, 0.05, 0.05 + (LARGE - SMALL) * 2e-8, LARGE)
    assert elements <= MOST_ELEMENTS
    assert elements * times == pytest.approx(9.95 / 2e-8, rel=0.01)


def test_the_table_says_what_was_seen() -> None:
    seen = Length(0.1, 0.008, (1.0, 1.01, 0.99), 3, 0.91, (0.90, 0.92), True)
    missed = Length(0.012, 0.12, (1.0, 1.2), 1, 0.97, (0.85, 1.1), False)
    heading, first, second = table([seen, missed])
    assert "interval holds 1" in heading
    assert "0.8%" in first
    assert "3 of 3" in first
    assert "✓ 0.91x [0.90–0.92]" in first
    assert "1 of 2" in second
    assert "✗ 0.97x" in second
