"""Foreign text is drawn and never obeyed; numbers are never cut or made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from cudal1_tui import words
from cudal1_tui.code import Growing, diff_lines, plain_lines, python_lines
from cudal1_tui.plain import clean, fit, one_line
from tests.tui import recorded


def test_escapes_and_control_characters_are_gone_and_the_rest_stays() -> None:
    text = clean(recorded.HOSTILE)
    assert text.startswith("[bold red]not markup[/] red")
    assert "日本語" in text
    assert "title" not in text
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in text)


@given(st.text())
def test_no_text_keeps_a_control_character(text: str) -> None:
    kept = clean(text)
    assert not any((ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u2066\u200b" for c in kept)
    assert "\n" not in one_line(text)


@given(st.text(), st.integers(1, 40))
def test_fit_takes_exactly_its_cells(text: str, width: int) -> None:
    assert cell_len(fit(one_line(text), width)) == width


def test_text_that_is_cut_says_so() -> None:
    assert fit("operation fusion", 10) == "operation…"
    assert fit("short", 10) == "short     "


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, "–"),
        (0.00321, "3.21 µs"),
        (0.412, "0.412 ms"),
        (2.5, "2.50 ms"),
        (87.12, "87.1 ms"),
        (2413, "2.41 s"),
    ],
)
def test_times_carry_their_unit(ms: float | None, text: str) -> None:
    assert words.ms_text(ms) == text


def test_a_speedup_that_is_not_known_is_a_dash() -> None:
    assert words.speedup_text(None) == "–"
    assert words.speedup_text(0.0123) == "0.012x"
    assert words.speed_ink(2.0) == "faster"
    assert words.speed_ink(0.9) == "slower"
    assert words.speed_ink(1.0) == "foreground"


@given(st.lists(st.floats(0.01, 100), max_size=60), st.integers(0, 50))
def test_a_sparkline_fits(values: list[float], width: int) -> None:
    assert len(words.sparkline(tuple(values), width)) == min(len(values), width)


@given(st.floats(0.01, 50), st.floats(0, 0.5), st.integers(20, 60))
def test_the_scale_shows_the_speedup_inside_its_interval(speedup: float, spread: float, width: int) -> None:
    line, first, last = words.scale((speedup * (1 - spread), speedup * (1 + spread)), speedup, width)
    assert len(line) == width
    assert first <= line.index("●") <= last


def test_code_that_grew_reads_as_the_whole() -> None:
    growing = Growing()
    for piece in recorded.WRITING:
        growing.append(piece)
    assert text_of(growing.lines) == recorded.WRITING
    inks = {name for line in growing.lines for name, _ in line}
    assert "code-keyword" in inks


def test_only_the_lines_that_changed_are_named() -> None:
    growing = Growing()
    assert growing.append("import torch\nx = 1") == 0
    assert growing.append("2\n") == 1
    assert growing.append("y") == 2


def test_prose_around_the_code_is_not_coloured_as_code() -> None:
    growing = Growing()
    growing.append("Why is it for import?\n```python\nimport torch\n```\nDone for now")
    inks = [{name for name, _ in line} for line in growing.lines]
    assert inks == [{"muted"}, {"muted"}, {"code-keyword", "foreground"}, {"muted"}, {"muted"}]


@given(st.text())
def test_colouring_loses_nothing(text: str) -> None:
    assert text_of(python_lines(text)).rstrip("\n") == clean(text).rstrip("\n")


def test_the_difference_is_unified_and_coloured() -> None:
    lines = diff_lines("a\nb\nc\n", "a\nB\nc\n")
    assert [line[0] for line in lines if line[0][1][:1] in "+-"][2:] == [
        ("diff-removed", "-b"),
        ("diff-added", "+B"),
    ]
    assert text_of(diff_lines("same", "same")) == "The same text as the reference."
    assert "Too long" in text_of(diff_lines("x\n" * 5000, "y"))


def test_very_long_code_is_shown_plain() -> None:
    code = "import torch\n" * 20_000
    assert python_lines(code) == plain_lines(code)


def text_of(lines: object) -> str:
    return "\n".join("".join(text for _, text in line) for line in lines)  # type: ignore[attr-defined]


@pytest.mark.parametrize("interval", [(5.04, 1882.6), (0.01, 99.994), (8321.0, 9999.4), (1e5, 3e8)])
def test_no_interval_is_too_wide_for_its_column(interval: tuple[float, float]) -> None:
    assert len(words.interval_text(interval)) <= 13


def test_a_figure_rounded_towards_one_lies_within_its_interval() -> None:
    assert words.interval_text((5.547, 8.781)) == "[5.54–8.79]"
    assert words.interval_text((0.812, 0.999)) == "[0.81–1.00]"
    assert words.interval_text((1.1, 1.1)) == "[1.10–1.10]"
