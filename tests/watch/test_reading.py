"""What a file means: comments and spacing do not change it, its own modules do."""

from __future__ import annotations

from pathlib import Path

import pytest
from cudal1_core.watch.reading import UnreadableError, may_be_reference, read

from tests.watch.references import reference


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(reference())
    return path


def fingerprint(path: Path) -> str:
    reading = read(path)
    assert reading is not None
    return reading.fingerprint


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "# a comment\n" + text,
        lambda text: text.replace("\n\n\n", "\n\n\n\n\n"),
        lambda text: text.replace("x + 1", "x  +  1  # one"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("return x + 1", "return (\n            x + 1\n        )"),
    ],
)
def test_comments_and_spacing_change_nothing(model: Path, change) -> None:  # type: ignore[no-untyped-def]
    before = fingerprint(model)
    model.write_bytes(change(reference()).encode())
    assert fingerprint(model) == before


@pytest.mark.parametrize(("old", "new"), [("+ 1", "+ 2"), ("+ 1", "+ 1.0"), ("randn(4)", "rand(4)"), ("x", "y")])
def test_code_changes_it(model: Path, old: str, new: str) -> None:
    before = fingerprint(model)
    model.write_text(reference().replace(old, new))
    assert fingerprint(model) != before


def test_its_own_modules_count_also_through_others(model: Path) -> None:
    (model.parent / "pack").mkdir()
    (model.parent / "pack" / "__init__.py").write_text("")
    first, second = model.with_name("first.py"), model.parent / "pack" / "second.py"
    first.write_text("from pack import second\n")
    second.write_text("A = 1\n")
    model.write_text("import first\n" + reference())
    reading = read(model)
    assert reading is not None
    assert reading.helpers == {first, second, second.with_name("__init__.py")}
    second.write_text("A = 1  # a comment\n")
    assert fingerprint(model) == reading.fingerprint
    second.write_text("A = 2\n")
    assert fingerprint(model) != reading.fingerprint


def test_modules_that_import_each_other_end(model: Path) -> None:
    model.with_name("one.py").write_text("import two, model\n")
    model.with_name("two.py").write_text("from .one import a\n")
    model.write_text("import one\n" + reference())
    reading = read(model)
    assert reading is not None
    assert {helper.name for helper in reading.helpers} == {"one.py", "two.py"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"def f(:\n", "model.py:1: "),
        (b"x = 1\ny = (\n", "model.py:2: "),
        (b"x = '\xff'\n", "model.py: "),
        (b"x = 1\0", r"model\.py"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(model: Path, content: bytes, said: str) -> None:
    model.write_bytes(content)
    with pytest.raises(UnreadableError, match=said):
        read(model)


def test_a_module_that_does_not_parse_makes_the_reference_wait(model: Path) -> None:
    model.with_name("helper.py").write_text("def f(:\n")
    model.write_text("import helper\n" + reference())
    with pytest.raises(UnreadableError, match=r"helper\.py:1"):
        read(model)


def test_candidates_and_other_files_are_no_references(model: Path) -> None:
    assert may_be_reference(model)
    model.write_text("class ModelNew: ...\n")
    assert read(model) is None
    model.write_text(reference().replace("class Model(", "class ModelNew("))
    assert read(model) is None
    ours = "# 2.00x as fast as model.py (Model), on a\n# judge it again: cudal1-tui verify model.py fast.py\n\n"
    model.write_text(ours + reference())
    assert read(model) is None


def test_another_class_can_be_named(model: Path) -> None:
    model.write_text(reference().replace("class Model(nn.Module)", "class Net(Base)"))
    assert read(model) is None
    assert read(model, "Net") is not None
