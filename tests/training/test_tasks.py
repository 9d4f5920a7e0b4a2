"""Tasks from anywhere, split by family before anything is trained."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from cudal1_core.archive import Archive
from cudal1_core.errors import UsageError
from cudal1_training import synthetic
from cudal1_training.families import family_of
from cudal1_training.settings import TaskSettings
from cudal1_training.tasks import TrainTask, find_tasks, read_split, split, write_split

REFERENCE = """\
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, {channels}, 3)
    def forward(self, x):
        return torch.relu(self.conv(x)){tail}

def get_inputs():
    return [torch.rand(2, 3, {side}, {side})]

def get_init_inputs():
    return []
"""


def tasks(*families: str) -> list[TrainTask]:
    return [TrainTask(f"t{at}", family, f"/w/t{at}.py", str(at)) for at, family in enumerate(families)]


def test_shapes_make_no_family_and_operations_do() -> None:
    small, large = REFERENCE.format(channels=4, side=8, tail=""), REFERENCE.format(channels=64, side=224, tail="")
    other = REFERENCE.format(channels=4, side=8, tail=".mean(dim=1)")
    assert family_of(small) == family_of(large) == "conv2d+relu"
    assert family_of(other) != family_of(small)
    assert family_of("not python (") == "other"


def test_a_family_is_either_trained_on_or_held_out() -> None:
    made = tasks(*"aabbbccddde" * 2)
    done = split(made, 0.2, seed=0)
    held = {task.family for task in done if task.held_out}
    assert held
    assert held.isdisjoint({task.family for task in done if not task.held_out})
    assert sum(task.held_out for task in done) >= 0.2 * len(made)
    assert done == split(made, 0.2, seed=0)


def test_a_single_family_is_trained_on_whole() -> None:
    assert not any(task.held_out for task in split(tasks("a", "a"), 0.5, seed=0))


def test_the_split_is_read_back_and_a_changed_reference_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "refs").mkdir()
    for side in (8, 9):
        (tmp_path / "refs" / f"r{side}.py").write_text(REFERENCE.format(channels=4, side=side, tail=""))
    found = find_tasks(TaskSettings(path=str(tmp_path / "refs")), Archive(), tmp_path / "made", "cpu", 0)
    write_split(tmp_path / "split.json", found)
    assert read_split(tmp_path / "split.json") == found
    (tmp_path / "refs" / "r8.py").write_text("# other\n")
    with pytest.raises(UsageError, match=r"r8\.py is gone or has changed"):
        read_split(tmp_path / "split.json")


def test_generated_tasks_differ_parse_and_cover_all_families(tmp_path: Path) -> None:
    made = synthetic.generate(40, 0, small=True)
    assert len({one.source for one in made}) == 40
    assert {one.family for one in made} == set(synthetic.FAMILIES)
    for one in made:
        ast.parse(one.source)
    assert made == synthetic.generate(40, 0, small=True)
    assert {one.source for one in made} != {one.source for one in synthetic.generate(40, 1, small=True)}


def test_a_reference_like_a_generated_one_is_of_its_family(tmp_path: Path) -> None:
    (twin,) = (one for one in synthetic.generate(14, 0, small=True) if one.family == "softmax")
    (tmp_path / "refs").mkdir()
    (tmp_path / "refs" / "mine.py").write_text(twin.source.replace("class Model", "class  Model"))
    settings = TaskSettings(path=str(tmp_path / "refs"), synthetic=14)
    found = find_tasks(settings, Archive(), tmp_path / "made", "cpu", 0)
    assert {task.name: task.family for task in found}["mine"] == "softmax"


def test_no_tasks_at_all_is_said_with_what_to_do() -> None:
    with pytest.raises(UsageError, match="no task to train on") as caught:
        find_tasks(TaskSettings(), Archive(), Path("/tmp"), "cpu", 0)
    assert "--synthetic" in caught.value.next_step
