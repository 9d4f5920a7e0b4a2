"""One documented file says everything a training is told; mistakes in it are named."""

from __future__ import annotations

from pathlib import Path

import pytest
from cudal1_core.errors import UsageError
from cudal1_training.settings import Settings, flat, read_settings, to_toml

from cudal1_tui.commands.train_arguments import SETTINGS, settings_of, stage_parser


def test_the_documented_file_holds_every_default_and_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "training.toml"
    path.write_text(to_toml(Settings(), documented=True))
    assert read_settings(path) == Settings()
    text = path.read_text()
    assert all(f"{key.rpartition('.')[2]} = " in text for key in flat(Settings()))
    assert "clip = 1.5" in text


def test_changes_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "training.toml"
    path.write_text("[rl]\ngroup = 4\nbeta = 0\n")
    settings = read_settings(path, ["rl.group=16", "sft.teachers=archive,replay", 'model.name="a b"'])
    assert (settings.rl.group, settings.rl.beta, settings.model.name) == (16, 0.0, "a b")
    assert settings.sft.teachers == ("archive", "replay")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("rl.grup=4", "rl.group"),
        ("reports.samples=1", "report"),
        ("rl.group=many", "wrong kind"),
        ("rl.group=1", "below 2"),
        ("rl.exemplars=best", "bucket, island, random, none"),
        ("rl=4", "is a section"),
        ("rl.group", "KEY=VALUE"),
    ],
)
def test_a_mistake_is_named_with_what_was_meant(change: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_settings(None, [change])
    assert said in str(caught.value)


def test_every_flag_changes_a_setting_that_exists() -> None:
    assert set(SETTINGS.values()) <= set(flat(Settings()))
    words = "all --model tiny --steps 2 --group 2 --exemplars random --no-smoothing --teachers archive --lora-rank 0"
    settings = read_settings(None, settings_of(stage_parser().parse_args(words.split())))
    assert (settings.sft.steps, settings.self.steps, settings.rl.steps) == (2, 2, 2)
    assert (settings.rl.exemplars, settings.rl.smoothing, settings.model.lora_rank) == ("random", False, 0)
    assert settings.sft.teachers == ("archive",)
