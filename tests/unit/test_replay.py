"""Replay plays what exists, in order, and only what fits the reference."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from cudal1_core.candidate import Candidate
from cudal1_core.errors import PolicyError, UsageError
from cudal1_core.events import CandidateWritten, RunFinished, to_json
from cudal1_core.policies import make_policy
from cudal1_core.policies.base import Fragment, Prompt
from cudal1_core.policies.replay import ReplayPolicy

from tests.unit.scripted import SOURCE, code, make_task


def groups(path: Path, *sizes: int) -> list[list[Fragment]]:
    policy = ReplayPolicy(path)
    prompt = Prompt(task=make_task(), round=1, text="", exemplars=(), history=(), seed=0)

    async def play() -> list[list[Fragment]]:
        return [[fragment async for fragment in policy.generate(prompt, size)] for size in sizes]

    return asyncio.run(play())


def texts(path: Path, *sizes: int) -> list[list[str]]:
    return [[fragment.text for fragment in group] for group in groups(path, *sizes)]


def rows(path: Path, *values: object) -> Path:
    path.write_text("".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values), encoding="utf-8")
    return path


def test_a_file_is_one_candidate(tmp_path: Path) -> None:
    path = tmp_path / "fast.py"
    path.write_text(code("a"))
    ((fragment,), rest) = groups(path, 4, 4)
    assert fragment == Fragment(0, code("a"), done=True, title="fast")
    assert rest == []


def test_a_folder_is_played_in_natural_order_group_by_group(tmp_path: Path) -> None:
    for name in ("c10", "c2", "c1"):
        (tmp_path / f"{name}.py").write_text(code(name))
    (tmp_path / "notes.txt").write_text("no candidate")
    assert texts(tmp_path, 2, 2, 2) == [[code("c1"), code("c2")], [code("c10")], []]


def test_released_rows_count_for_their_own_reference(tmp_path: Path) -> None:
    path = rows(
        tmp_path / "a100.jsonl",
        {"ref_code": "class Model: other", "custom_code": code("other")},
        {"ref_code": SOURCE + "\n", "custom_code": code("mine")},
        {"ref_code": SOURCE, "custom_code": None},
        {"ref_code": SOURCE, "custom_code": ""},
        {"source": code("any")},
    )
    assert texts(path, 9) == [[code("mine"), code("any")]]


def test_the_events_of_an_earlier_run_are_played_again_even_when_it_was_killed(tmp_path: Path) -> None:
    candidate = Candidate(
        id="c01",
        round=1,
        policy="x",
        source=code("a"),
        text="## Design\u2028\n" + code("a"),
        title="fused",
        techniques=("fusion",),
    )
    path = tmp_path / "events.jsonl"
    lines = [
        to_json(CandidateWritten(candidate=candidate)),
        to_json(RunFinished(reason="done", best=None, best_speedup=None)),
    ]
    path.write_text("\n".join(lines) + '\n{"event": "token_arr', encoding="utf-8")
    ((fragment,),) = groups(path, 9)
    assert (fragment.text, fragment.title, fragment.techniques) == (candidate.text, "fused", ("fusion",))


def test_a_single_row_is_played_whatever_reference_it_names(tmp_path: Path) -> None:
    path = rows(tmp_path / "one.jsonl", {"ref_code": "class Model: other", "custom_code": code("mine")})
    assert texts(path, 9) == [[code("mine")]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"custom_code": "x"}\nnot json\n{}\n', "bad.jsonl:2"),
        ('{"score": 1}\n', "No candidates"),
        ('{"ref_code": "another", "custom_code": "class ModelNew: ..."}\n' * 2, "is for this reference"),
    ],
)
def test_rows_that_cannot_be_used_are_named(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    with pytest.raises(PolicyError, match=words):
        groups(path, 1)


def test_a_path_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be read"):
        groups(tmp_path / "gone.py", 1)
    with pytest.raises(PolicyError, match="No candidates"):
        groups(tmp_path, 1)


def test_policies_by_name() -> None:
    with pytest.raises(UsageError, match="needs candidates"):
        make_policy("replay")
    with pytest.raises(UsageError, match="no policy 'replya'"):
        make_policy("replya")
    assert make_policy("replay", candidates=Path("x.py")).name == "replay"
