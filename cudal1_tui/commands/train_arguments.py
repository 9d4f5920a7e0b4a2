"""The command line of `cudal1-tui train`. What a flag says goes to the trainer's process as `section.key=value`."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from cudal1_core.errors import UsageError

from cudal1_tui import arguments
from cudal1_tui.arguments import Parser

STAGES = ("sft", "self", "rl", "all")

# Flag of each setting that has one; `--set` changes the rest.
SETTINGS = {
    "model": "model.name",
    "adapter": "model.adapter",
    "lora_rank": "model.lora_rank",
    "model_device": "model.device",
    "tasks": "tasks.path",
    "synthetic": "tasks.synthetic",
    "held_out": "tasks.held_out",
    "teachers": "sft.teachers",
    "replay": "sft.replay",
    "url": "sft.url",
    "teacher": "sft.teacher",
    "group": "rl.group",
    "exemplars": "rl.exemplars",
    "device": "judge.device",
    "timing": "judge.timing",
    "samples": "report.samples",
    "seed": "seed",
    "archive": "archive",
}
BOUNDED = ("sft.steps", "self.steps", "rl.steps")  # by --steps


def stage_parser() -> Parser:
    parser = Parser(
        prog="cudal1-tui train",
        usage="cudal1-tui train {sft,self,rl,all} --model MODEL --tasks PATH [options]\n"
        "       cudal1-tui train watch DIR\n"
        "       cudal1-tui train preferences [--out DIR]\n"
        "       cudal1-tui train config",
        description="Trains a model in CUDA-L1's three stages, with rewards from the referee. A training that was "
        "stopped or killed goes on when the same command is given again.",
        epilog="exit status: 0 done, 2 wrong usage, 3 paused or failed (what is done is kept), 130 and 143 stopped. "
        "`train config` prints every setting with its default.",
        allow_abbrev=False,
    )
    parser.add_argument("stage", choices=STAGES, help="supervised, self-supervised, contrastive RL, or all three")
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file with settings; flags win over it")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any setting: rl.beta=0.02")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the training (.cudal1/train/MODEL)")
    parser.add_argument("--dry-run", action="store_true", help="say what would be trained on, and train nothing")
    parser.add_argument(
        "--json", action="store_true", help="the event stream on standard output, one JSON object a line"
    )
    model = parser.add_argument_group("model")
    model.add_argument("--model", metavar="NAME", help="folder, .gguf file or hub id; tiny makes a small random one")
    model.add_argument("--adapter", type=Path, metavar="DIR", help="LoRA adapter to begin with")
    model.add_argument("--lora-rank", type=arguments.whole, metavar="N", help="0 trains all weights (16)")
    model.add_argument("--model-device", choices=("auto", "cpu", "cuda"), help="where it is trained (auto)")
    model.add_argument("--processes", type=arguments.count, default=1, metavar="N", help="one a GPU, by torchrun (1)")
    model.add_argument("--steps", type=arguments.count, metavar="N", help="optimiser steps of each stage")
    tasks = parser.add_argument_group("tasks")
    tasks.add_argument("--tasks", metavar="PATH", help="folder of references, KernelBench, JSON Lines, or archive")
    tasks.add_argument("--synthetic", type=arguments.whole, metavar="N", help="so many generated tasks besides")
    tasks.add_argument("--held-out", type=share, metavar="SHARE", help="of tasks, in whole families (0.2)")
    code = parser.add_argument_group("code of stage one")
    code.add_argument("--teachers", metavar="LIST", help="archive,playbook,replay,openai (archive,playbook)")
    code.add_argument(
        "--replay", type=Path, metavar="PATH", help="for replay: the CUDA-L1 release, JSON Lines or a folder"
    )
    code.add_argument("--url", metavar="URL", help="for openai: the server")
    code.add_argument("--teacher", metavar="NAME", help="for openai: its model")
    rl = parser.add_argument_group("contrastive RL")
    rl.add_argument("--group", type=arguments.count, metavar="N", help="answers to a prompt (8)")
    rl.add_argument(
        "--exemplars", choices=("bucket", "island", "random", "none"), help="how earlier code is chosen (bucket)"
    )
    rl.add_argument("--no-smoothing", action="store_true", help="plain speedups as rewards")
    rl.add_argument("--allow-not-drop-in", action="store_true", help="reward code that does not load the weights")
    rest = parser.add_argument_group("judging and the rest")
    rest.add_argument(
        "--device", type=arguments.device, metavar="DEVICE", help="of the referee: auto, cpu, cuda:N (auto)"
    )
    rest.add_argument("--timing", type=arguments.positive, metavar="S", help="most seconds of timing a candidate (6)")
    rest.add_argument("--samples", type=arguments.whole, metavar="N", help="answers a held-out task (4); 0: no report")
    rest.add_argument("--seed", type=int, metavar="N", help="steers sampling and choice, never the referee (0)")
    rest.add_argument("--archive", type=Path, metavar="FILE", help="the archive (.cudal1/archive.db)")
    return parser


def preferences_parser() -> Parser:
    parser = Parser(
        prog="cudal1-tui train preferences",
        description="Writes decisions as data: kto.jsonl (kept, dismissed) and dpo.jsonl (one over the other).",
        allow_abbrev=False,
    )
    parser.add_argument("--out", type=Path, default=Path("preferences"), metavar="DIR", help="(preferences)")
    parser.add_argument("--archive", type=Path, metavar="FILE", help="the archive (.cudal1/archive.db)")
    return parser


def watch_parser() -> Parser:
    parser = Parser(
        prog="cudal1-tui train watch", description="Shows a training in the workbench.", allow_abbrev=False
    )  # fmt: skip
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the training")
    return parser


def models_parser() -> Parser:
    parser = Parser(
        prog="cudal1-tui models",
        description="Lists what was trained from this folder, from what, how it did, and the words that use it.",
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    return parser


def settings_of(options: argparse.Namespace) -> list[str]:
    """The flags as changes of settings, those of `--set` last."""
    changes = []
    for flag, key in SETTINGS.items():
        value: Any = getattr(options, flag, None)
        if value is not None:
            changes.append(f"{key}={_text(flag, value)}")
    if getattr(options, "steps", None):
        changes += [f"{key}={options.steps}" for key in BOUNDED]
    if getattr(options, "no_smoothing", False):
        changes.append("rl.smoothing=false")
    if getattr(options, "allow_not_drop_in", False):
        changes.append("rl.allow_not_drop_in=true")
    return [*changes, *getattr(options, "set", [])]


def _text(flag: str, value: Any) -> str:
    """Paths are made absolute, so that a training can go on from another folder."""
    if isinstance(value, Path) or (flag in ("tasks", "model") and Path(value).exists()):
        value = str(Path(value).absolute())
    if flag == "teachers":
        value = [word.strip() for word in value.split(",")]
    return json.dumps(value)


def default_out(changes: list[str], config: Path | None) -> Path:
    """`.cudal1/train/<model>`. Raises UsageError where nothing names the model."""
    named = [change.partition("=")[2] for change in changes if change.startswith("model.name=")]
    if not named and config is None:
        raise UsageError(
            "No model is named", "", "Add --model with a folder, a .gguf file or a hub id; tiny for a test."
        )
    name = named[-1].strip('"') if named else (config or Path("training")).stem
    return Path(".cudal1") / "train" / (re.sub(r"[^\w.-]+", "-", Path(name).name) or "model")


def share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share such as 0.2")
    return value
