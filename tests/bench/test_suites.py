"""What counts as a suite, and which tasks and candidates are taken from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cudal1_core.bench.suites import Choice, Subject, choose, read_suite, with_candidates
from cudal1_core.errors import UsageError

REFERENCE = "class Model: ...\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n"
CANDIDATE = "class ModelNew: ...\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def kernel_bench(tmp_path: Path) -> Path:
    for level, name in ((1, "10_Tensor_sum_"), (1, "2_Matmul"), (2, "96_ConvTranspose3d_Multiply"), (2, "notes")):
        write(tmp_path / "KernelBench" / f"level{level}" / f"{name}.py", REFERENCE + f"# {level} {name}\n")
    return tmp_path


def release(path: Path, *rows: dict[str, object]) -> Path:
    return write(path, "".join(json.dumps(row) + "\n" for row in rows))


def test_a_checkout_gives_its_problems_in_the_order_of_their_numbers(kernel_bench: Path) -> None:
    subjects = read_suite(kernel_bench)
    assert [subject.task for subject in subjects] == ["L1/2", "L1/10", "L2/96"]
    assert (subjects[1].title, subjects[1].level, subjects[1].number) == ("Tensor sum", 1, 10)


def test_one_level_of_a_checkout_is_a_suite_too(kernel_bench: Path) -> None:
    assert [s.task for s in read_suite(kernel_bench / "KernelBench" / "level2")] == ["L2/96"]


def test_the_release_gives_references_candidates_and_claims(tmp_path: Path) -> None:
    path = release(
        tmp_path / "h100.jsonl",
        {"level_id": 2, "task_id": 96, "ref_code": REFERENCE, "custom_code": CANDIDATE, "score_default": 368.2},
        {"level_id": 1, "task_id": 8, "ref_code": REFERENCE, "custom_code": "None", "score_default": 7.2},
        {"level_id": 1, "task_id": 9, "ref_code": REFERENCE, "custom_code": None, "score_default": None},
    )
    one, none, null = read_suite(path)
    assert (one.task, one.candidates[0].text, one.claimed) == ("L2/96", CANDIDATE, {"eager": 368.2})
    assert [s.candidates[0].text for s in (none, null)] == ["", ""]
    assert null.claimed == {}


def test_a_folder_of_references_brings_what_lies_beside_them(tmp_path: Path) -> None:
    write(tmp_path / "norm.py", REFERENCE)
    write(tmp_path / "norm_optimized.py", CANDIDATE)
    write(tmp_path / "norm" / "c2.py", CANDIDATE)
    write(tmp_path / "norm" / "c10.py", CANDIDATE)
    write(tmp_path / "helpers.py", "x = 1\n")
    (subject,) = read_suite(tmp_path)
    assert [source.name for source in subject.candidates] == ["c2", "c10", "norm_optimized"]


def test_what_is_no_suite_is_refused_with_what_is_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such suite"):
        read_suite(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="holds no reference"):
        read_suite(tmp_path)
    with pytest.raises(UsageError, match=r"rows\.jsonl:2: not a JSON object"):
        read_suite(write(tmp_path / "rows.jsonl", json.dumps({"ref_code": REFERENCE}) + "\n{oops\n"))
    twice = {"level_id": 1, "task_id": 1, "ref_code": REFERENCE}
    with pytest.raises(UsageError, match="L1/1 more than once"):
        read_suite(release(tmp_path / "twice.jsonl", twice, twice))


def test_filters_by_level_id_limit(kernel_bench: Path) -> None:
    subjects = read_suite(kernel_bench)
    assert [s.task for s in choose(subjects, Choice(levels=(2,)))] == ["L2/96"]
    assert [s.task for s in choose(subjects, Choice(ids=("2/96", "L1/2")))] == ["L1/2", "L2/96"]
    assert [s.task for s in choose(subjects, Choice(limit=2))] == ["L1/2", "L1/10"]
    with pytest.raises(UsageError, match="no task L1/99"):
        choose(subjects, Choice(ids=("L1/99",)))
    with pytest.raises(UsageError, match="No task is left"):
        choose(subjects, Choice(levels=(3,)))


def test_shares_are_disjoint_and_together_the_whole(kernel_bench: Path) -> None:
    subjects = read_suite(kernel_bench)
    parts = [choose(subjects, Choice(share=(part, 2))) for part in (1, 2)]
    assert sorted(s.task for part in parts for s in part) == sorted(s.task for s in subjects)
    assert [len(part) for part in parts] == [2, 1]


def test_a_shuffled_share_is_another_part_for_another_seed_and_the_same_for_the_same() -> None:
    subjects = [Subject(f"L1/{number}", "") for number in range(40)]

    def half(seed: int, part: int) -> list[str]:
        return [s.task for s in choose(subjects, Choice(shuffle=seed, share=(part, 2)))]

    assert half(1, 1) == half(1, 1) != half(2, 1)
    assert sorted(half(1, 1) + half(1, 2)) == sorted(s.task for s in subjects)
    assert [s.task for s in subjects[:3]] == ["L1/0", "L1/1", "L1/2"]


@pytest.mark.parametrize(
    "name",
    ["L2/96.py", "level2/96_fast.py", "level_2_problem_96_sample_0_kernel.py", "96_ConvTranspose3d_Multiply/v1.py"],
)
def test_candidates_of_a_checkout_may_lie_in_any_usual_form(kernel_bench: Path, tmp_path: Path, name: str) -> None:
    write(tmp_path / "mine" / name, CANDIDATE)
    found = with_candidates(read_suite(kernel_bench), tmp_path / "mine")
    assert [(s.task, len(s.candidates)) for s in found] == [("L1/2", 0), ("L1/10", 0), ("L2/96", 1)]


def test_candidates_in_json_lines_find_their_task_by_id_or_by_reference(kernel_bench: Path, tmp_path: Path) -> None:
    text = (kernel_bench / "KernelBench" / "level1" / "2_Matmul.py").read_text()
    path = release(
        tmp_path / "kernels.jsonl",
        {"level_id": 2, "task_id": 96, "custom_code": CANDIDATE, "score_default": 2.0},
        {"ref_code": text + "\n", "source": CANDIDATE},
        {"task": "L1/10", "text": f"Here it is:\n```python\n{CANDIDATE}```"},
    )
    found = with_candidates(read_suite(kernel_bench), path)
    assert [[source.text for source in subject.candidates] for subject in found] == [[CANDIDATE]] * 3
    assert found[2].claimed == {"eager": 2.0}


def test_candidates_for_no_task_of_the_suite_are_refused(kernel_bench: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is for a task of this suite"):
        with_candidates(read_suite(kernel_bench), release(tmp_path / "x.jsonl", {"task": "L9/9", "source": CANDIDATE}))
    with pytest.raises(UsageError, match="one file for 3 tasks"):
        with_candidates(read_suite(kernel_bench), write(tmp_path / "one.py", CANDIDATE))
