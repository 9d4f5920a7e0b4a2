"""Code out of answers as models write them."""

from __future__ import annotations

import ast

import pytest
from cudal1_core.extract import extract_code
from hypothesis import given
from hypothesis import strategies as st

CODE = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n"


@pytest.mark.parametrize(
    "answer",
    [
        CODE,
        f"## Code Implementation\n\n```python\n{CODE}```\n",
        f"```\n{CODE}```",
        f"~~~py\n{CODE}~~~\n",
        f"Some words.\n\n````python\n{CODE}````\nAnd more.",
        f'```python title="fast.py"\n{CODE}```',
        f"```python\n{CODE}",  # cut off by the token limit
        f"Here is the code:\n\n{CODE}",
        "\ufeff" + CODE,
    ],
)
def test_the_code_alone_comes_out(answer: str) -> None:
    assert extract_code(answer) == CODE
    assert extract_code(answer.replace("\n", "\r\n")) == CODE


def test_the_last_fence_that_defines_the_class_counts() -> None:
    answer = (
        "```python\nclass ModelNew:\n    first = True\n```\nBetter:\n"
        f"```python\n{CODE}```\nUse it so:\n```python\nModelNew()\n```\n"
    )
    assert extract_code(answer) == CODE


def test_a_fence_inside_a_list_loses_its_indentation() -> None:
    indented = "".join(f"   {line}" if line.strip() else line for line in CODE.splitlines(keepends=True))
    assert extract_code(f"1. Do this:\n\n   ```python\n{indented}   ```\n") == CODE


def test_a_python_file_with_a_fence_in_its_docstring_is_taken_whole() -> None:
    source = f'"""Use:\n\n```python\nclass ModelNew: ...\n```\n"""\n{CODE}'
    assert extract_code(source) == source


def test_code_that_does_not_parse_is_kept_for_the_referee_to_judge() -> None:
    broken = "class ModelNew(:\n    pass\n"
    assert extract_code(broken) == broken
    assert extract_code(f"```python\n{broken}```") == broken


@pytest.mark.parametrize(
    "answer", ["", "None", "I cannot do that.", "```python\nprint(1)\n```", "Your ModelNew should be fused."]
)
def test_an_answer_without_the_class_holds_no_code(answer: str) -> None:
    assert extract_code(answer) == ""


@pytest.mark.parametrize("tag", ["think", "thinking", "reasoning"])
def test_what_was_only_thought_is_not_the_answer(tag: str) -> None:
    draft = "```python\nclass ModelNew:\n    draft = True\n```"
    assert extract_code(f"<{tag}>Maybe\n{draft}</{tag}>\n```python\n{CODE}```") == CODE
    assert extract_code(f"```python\n{CODE}```\n<{tag}>or else\n{draft}") == CODE
    assert extract_code(f"{draft}\n</think>\n```python\n{CODE}```") == CODE
    assert "draft" in extract_code(f"<{tag}>all there is\n{draft}")


def test_a_whole_block_goes_before_a_later_one_that_was_cut() -> None:
    assert extract_code(f"```python\n{CODE}```\nAgain:\n```python\nclass ModelNew(torch.nn.Mod") == CODE


def test_a_fence_in_a_docstring_does_not_end_the_block() -> None:
    source = f'"""Use:\n\n```python\nModelNew()\n```\n"""\n{CODE}'
    assert extract_code(f"Here:\n```python\n{source}```\nIt is fast.") == source


def test_words_after_code_without_a_fence_are_dropped() -> None:
    assert extract_code(f"Here it is:\n\n{CODE}\nThis code is faster, isn't it?\n\n- It fuses.") == CODE


def test_of_two_classes_in_a_block_both_stay() -> None:
    twice = CODE + "\n\n" + CODE
    assert extract_code(f"```python\n{twice}```") == twice


@pytest.mark.parametrize("name", ["Model", "ModelNewer", "NewModel", "modelnew"])
def test_a_class_with_another_name_is_no_candidate(name: str) -> None:
    assert extract_code(f"```python\n{CODE.replace('ModelNew', name)}```") == ""


PIECES = ["```", "```python\n", "~~~\n", "<think>", "</think>", "class ModelNew:\n", "    pass\n", '"""', "\r\n", "x\n"]


@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_any_heap_of_what_answers_are_made_of_gives_code_or_nothing(pieces: list[str]) -> None:
    found = extract_code("".join(pieces))
    assert found == "" or "ModelNew" in found
    assert "\r" not in found


@given(st.integers(0, len(CODE)))
def test_an_answer_cut_anywhere_gives_its_beginning_or_nothing(length: int) -> None:
    found = extract_code(f"## Code\n```python\n{CODE[:length]}")
    assert found == "" or CODE.startswith(found.rstrip("\n"))


@given(st.text())
def test_any_text_gives_code_or_nothing(text: str) -> None:
    found = extract_code(text)
    assert found == "" or "ModelNew" in found


@given(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="`~\r"), max_size=200))
def test_prose_around_a_fence_never_gets_in(prose: str) -> None:
    found = extract_code(f"{prose}\n```python\n{CODE}```\n{prose}")
    assert ast.dump(ast.parse(found)) == ast.dump(ast.parse(CODE))


def test_prose_behind_a_fence_that_was_never_closed_is_dropped_and_code_cut_off_stays_broken() -> None:
    whole = "class ModelNew:\n    def forward(self, x):\n        return x\n"
    prose = "\nThis is faster, since nothing is computed.\n\nIt saves a launch too.\n"
    assert extract_code(f"Here:\n```python\n{whole}{prose}") == whole
    cut = whole + "\n    def extra(self, y):\n        return self.la(y +\n"
    assert extract_code(f"```python\n{cut}") == cut
