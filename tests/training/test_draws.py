"""Contrastive prompts from the living archive: one a group, the same for every process, and after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest
from cudal1_core.archive import Archive
from cudal1_core.policies.base import Judged
from cudal1_core.prompt import build_prompt
from cudal1_core.reference import Task
from cudal1_training.draws import Draws
from cudal1_training.settings import RlSettings

from tests.training.world import code, judged, keep
from tests.unit.scripted import make_task

TASKS = {"a": make_task(), "b": make_task("class Model: other\n")}


def fit(task: Task, chosen: tuple[Judged, ...]) -> tuple[tuple[Judged, ...], str]:
    return chosen, build_prompt(task, chosen)


def draws(folder: Path, archive: Archive, *, leader: bool = True, **changes: object) -> Draws:
    folder.mkdir(exist_ok=True)
    return Draws(folder, TASKS, archive, RlSettings(**changes), 0, fit, leader=leader)  # type: ignore[arg-type]


def test_a_draw_stays_as_it_was_written_while_the_archive_grows(tmp_path: Path) -> None:
    archive = Archive()
    first = draws(tmp_path / "d", archive).get(1)
    keep(archive, judged(code("return x + 1")), task=TASKS[first.task])
    assert draws(tmp_path / "d", archive).get(1) == first
    assert draws(tmp_path / "d", archive, leader=False).get(1) == first
    fresh = draws(tmp_path / "e", archive).get(1)
    assert (fresh.task, fresh.mark) == (first.task, first.mark + 1)
    assert "x + 1" in fresh.prompt
    assert "x + 1" not in first.prompt


def test_every_task_comes_once_before_any_comes_again(tmp_path: Path) -> None:
    names = [draws(tmp_path / "d", Archive()).get(number).task for number in range(1, 7)]
    assert [sorted(names[at : at + 2]) for at in (0, 2, 4)] == [["a", "b"]] * 3


def test_rows_begin_at_the_draw_counter(tmp_path: Path) -> None:
    rows = draws(tmp_path / "d", Archive()).from_number(5)
    assert [next(rows)["draw"], next(rows)["draw"]] == [5, 6]


@pytest.mark.parametrize(("how", "shown"), [("bucket", 2), ("island", 2), ("random", 2), ("none", 0)])
def test_ablations_choose_exemplars_by_name(tmp_path: Path, how: str, shown: int) -> None:
    archive = Archive()
    for at in range(4):
        keep(archive, judged(code(f"return x + {at}"), 1.0 + at), task=TASKS["a"])
        keep(archive, judged(code(f"return x + {at}"), 1.0 + at), task=TASKS["b"])
    assert len(draws(tmp_path / how, archive, exemplars=how).get(1).exemplars) == shown


def test_what_was_fed_is_always_shown_and_what_was_dismissed_never(tmp_path: Path) -> None:
    archive = Archive()
    for task in TASKS.values():
        for at in range(6):
            keep(archive, judged(code(f"return x + {at}"), 9.0), task=task)
        keep(archive, judged(code("return x.fed"), 1.0), task=task, decision="fed")
        keep(archive, judged(code("return x.dismissed"), 50.0), task=task, decision="dismissed")
    made = draws(tmp_path / "d", archive)
    prompts = [made.get(number).prompt for number in range(1, 9)]
    assert all("x.fed" in prompt for prompt in prompts)
    assert not any("x.dismissed" in prompt for prompt in prompts)
