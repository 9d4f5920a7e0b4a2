"""What a training is told: one TOML file, every key with its default, its sentence and where the default is from.

CUDA-L1 (arXiv 2507.14111) publishes the trials a task and model of stage one, two exemplars from distinct buckets,
the clip of 1.5 and that there is a KL term. Group size, learning rates, beta, steps, bucket width and temperature
are not published: those defaults are ours.
"""

from __future__ import annotations

import difflib
import json
import tomllib
import types
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from cudal1_core.errors import UsageError


def _setting(default: Any, doc: str, *, paper: bool = False, choices: Sequence[str] = (), low: float = 0) -> Any:
    """A field with its sentence; `paper` where CUDA-L1 says so, `low` the least of a number."""
    return field(default=default, metadata={"doc": doc, "paper": paper, "choices": choices, "low": low})


@dataclass(frozen=True, slots=True)
class ModelSettings:
    name: str = _setting("", "Folder, .gguf file or hub id of what is trained; tiny makes a small random model.")
    adapter: str = _setting("", "LoRA adapter to begin with.")
    device: str = _setting("auto", "Where it is trained.", choices=("auto", "cpu", "cuda"))
    dtype: str = _setting("auto", "Of frozen weights; auto is float32 on the CPU, bfloat16 on a GPU.",
                          choices=("auto", "float32", "bfloat16", "float16"))  # fmt: skip
    lora_rank: int = _setting(16, "Rank of the LoRA adapter on every linear layer; 0 trains all weights.")
    lora_alpha: int = _setting(32, "Scale of the adapter.", low=1)
    chat_template: str = _setting("", "File with a chat template, for a tokenizer that has none.")
    gradient_checkpointing: bool = _setting(True, "Less memory for about a third more time.")


@dataclass(frozen=True, slots=True)
class TaskSettings:
    path: str = _setting("", "Folder of references, KernelBench checkout, JSON Lines with ref_code, or archive.")
    synthetic: int = _setting(0, "So many generated tasks besides.")
    shapes: str = _setting("auto", "Size of generated tasks; auto goes by the judge's device.",
                           choices=("auto", "small", "large"))  # fmt: skip
    held_out: float = _setting(0.2, "Share of tasks, in whole families, that is never trained on.")
    limit: int = _setting(0, "At most so many tasks; 0 is all.")
    weak: bool = _setting(False, "Also train on tasks whose reference a wrong program could pass.")


@dataclass(frozen=True, slots=True)
class SftSettings:
    teachers: tuple[str, ...] = _setting(
        ("archive", "playbook"),
        "Where code comes from: archive, playbook, replay, openai. All of it is judged first.",
        choices=("archive", "playbook", "replay", "openai"),
    )
    replay: str = _setting("", "For replay: JSON Lines with ref_code and custom_code, such as the CUDA-L1 release.")
    url: str = _setting("", "For openai: the server; the key comes from CUDAL1_API_KEY.")
    teacher: str = _setting("", "For openai: the model asked.")
    trials: int = _setting(20, "Most candidates of a task and teacher.", paper=True, low=1)
    successes: int = _setting(2, "Right candidates of a task after which a teacher stops.", paper=True, low=1)
    most: int = _setting(12, "Most examples of a task, the fastest first (paper: six teachers, two each).", low=1)
    steps: int = _setting(0, "Optimiser steps; 0 goes by epochs.")
    epochs: float = _setting(3.0, "Passes over the examples.")
    batch: int = _setting(8, "Examples a step.", low=1)
    micro_batch: int = _setting(1, "Of those, how many at once on one device.", low=1)
    learning_rate: float = _setting(1e-4, "Peak, after a warm-up over 3 % of the steps.")
    longest: int = _setting(8192, "Tokens of an example; a longer one is left out, never cut.", low=16)


@dataclass(frozen=True, slots=True)
class SelfSettings:
    rounds: int = _setting(2, "Times of: sample, judge, keep the right, tune.", low=1)
    samples: int = _setting(8, "Candidates a task and round.", low=1)
    temperature: float = _setting(1.0, "Of sampling.")
    longest: int = _setting(2048, "Tokens of an answer.", low=1)
    steps: int = _setting(0, "Optimiser steps a round; 0 goes by epochs.")
    epochs: float = _setting(1.0, "Passes over what was right.")
    learning_rate: float = _setting(5e-5, "Peak.")


@dataclass(frozen=True, slots=True)
class RlSettings:
    steps: int = _setting(200, "Optimiser steps.", low=1)
    group: int = _setting(8, "Answers to one prompt, whose rewards are compared.", low=2)
    prompts: int = _setting(1, "Prompts a step.", low=1)
    micro_batch: int = _setting(1, "Answers at once on one device in the backward pass.", low=1)
    learning_rate: float = _setting(1e-6, "Constant.")
    beta: float = _setting(0.04, "Weight of the KL term to where the stage starts; its size is not published.")
    epsilon: float = _setting(0.2, "PPO's clip.")
    temperature: float = _setting(1.0, "Of sampling.")
    longest: int = _setting(2048, "Tokens of an answer.", low=1)
    rollouts: str = _setting("auto", "What samples: auto takes vllm on a GPU where it is installed.",
                             choices=("auto", "transformers", "vllm"))  # fmt: skip
    exemplars: str = _setting("bucket", "How earlier code is chosen for a prompt.", paper=True,
                              choices=("bucket", "island", "random", "none"))  # fmt: skip
    exemplar_count: int = _setting(2, "Earlier candidates a prompt shows.", paper=True, low=1)
    bucket_width: float = _setting(0.25, "Of a bucket, in speedup.", low=1e-6)
    bucket_temperature: float = _setting(0.5, "Of the softmax over buckets, in speedup.", low=1e-6)
    smoothing: bool = _setting(True, "Rewards against the running mean and deviation of their task.", paper=True)
    clip: float = _setting(1.5, "Where smoothed rewards are cut.", paper=True, low=1e-6)
    allow_not_drop_in: bool = _setting(False, "Reward code that does not load the reference's weights.")
    patience: int = _setting(32, "Groups in a row with equal rewards after which training pauses; 0: never.")
    checkpoint_every: int = _setting(5, "Steps between checkpoints, in every stage.", low=1)


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    device: str = _setting("auto", "Where candidates are judged: auto, cpu, cuda or cuda:N.")
    timeout: float = _setting(30.0, "Seconds for one call.", low=0.1)
    build_timeout: float = _setting(120.0, "Seconds to build.", low=0.1)
    timing: float = _setting(6.0, "Most seconds of timing a candidate (paper: about 30 minutes).", low=0.1)
    lanes: int = _setting(0, "Referees side by side; 0 goes by cores on a GPU, and is one on the CPU.")


@dataclass(frozen=True, slots=True)
class ReportSettings:
    samples: int = _setting(4, "Answers a held-out task, of which the best counts; 0 makes no report.")
    temperature: float = _setting(0.8, "Of those answers.")
    longest: int = _setting(2048, "Tokens of an answer.", low=1)
    tasks: int = _setting(0, "At most so many held-out tasks; 0 is all.")


@dataclass(frozen=True, slots=True)
class Settings:
    seed: int = _setting(0, "Steers sampling and choice, never the referee.")
    archive: str = _setting("", "Archive that is read and added to; empty: .cudal1/archive.db here.")
    model: ModelSettings = field(default_factory=ModelSettings)
    tasks: TaskSettings = field(default_factory=TaskSettings)
    sft: SftSettings = field(default_factory=SftSettings)
    self: SelfSettings = field(default_factory=SelfSettings)
    rl: RlSettings = field(default_factory=RlSettings)
    judge: JudgeSettings = field(default_factory=JudgeSettings)
    report: ReportSettings = field(default_factory=ReportSettings)


def read_settings(path: Path | None, changes: Iterable[str] = ()) -> Settings:
    """The file's settings, then `section.key=value` changes. Raises UsageError with the nearest known key."""
    settings = Settings()
    if path is not None:
        try:
            data = tomllib.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"--config {path} cannot be read", str(error)) from error
        settings = _merged(settings, data, str(path), "")
    for change in changes:
        name, sign, text = change.partition("=")
        if not sign:
            raise UsageError(f"--set {change!r} is not KEY=VALUE", "", "Such as --set rl.group=4")
        data = _value(text)
        for part in reversed(name.strip().split(".")):
            data = {part: data}
        settings = _merged(settings, data, f"--set {change}", "")
    return settings


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text


def _merged(part: Any, data: dict[str, Any], place: str, above: str) -> Any:
    known = {entry.name: entry for entry in fields(part)}
    kinds = get_type_hints(type(part))
    values: dict[str, Any] = {}
    for key, value in data.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            meant = f"Did you mean {above}{near[0]}?" if near else f"Known: {', '.join(known)}."
            raise UsageError(f"{place}: there is no setting {above}{key}", meant)
        old = getattr(part, key)
        if known[key].default is MISSING:
            if not isinstance(value, dict):
                raise UsageError(f"{place}: {key} is a section", "", f"Write [{key}] and its keys below it.")
            values[key] = _merged(old, value, place, f"{key}.")
        else:
            values[key] = _checked(value, kinds[key], known[key].metadata, f"{place}: {above}{key}")
    return replace(part, **values)


def _checked(value: Any, kind: Any, bounds: types.MappingProxyType[str, Any], place: str) -> Any:
    if kind is float and type(value) is int:
        value = float(value)
    if kind == tuple[str, ...]:
        value = (
            tuple(value.split(",")) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value
        )
        words = value if isinstance(value, tuple) else ()
        good = isinstance(value, tuple) and all(isinstance(word, str) for word in value)
    else:
        words = (value,) if isinstance(value, str) else ()
        good = type(value) is kind
    if not good:
        raise UsageError(f"{place}: {value!r} is of the wrong kind", bounds["doc"])
    for word in words:
        if bounds["choices"] and word not in bounds["choices"]:
            raise UsageError(f"{place}: {word!r} is none of {', '.join(bounds['choices'])}", bounds["doc"])
    if type(value) in (int, float) and value < bounds["low"]:
        raise UsageError(f"{place}: {value} is below {bounds['low']}", bounds["doc"])
    return value


def to_toml(settings: Settings, *, documented: bool = False) -> str:
    """The whole file; `documented` puts each sentence above its key, with a mark where the paper says so."""
    lines: list[str] = []
    _write(settings, "", lines, documented)
    return "\n".join(lines) + "\n"


def _write(part: Any, name: str, lines: list[str], documented: bool) -> None:
    below = []
    if name:
        lines += ["", f"[{name}]"]
    for entry in fields(part):
        value = getattr(part, entry.name)
        if entry.default is MISSING:
            below.append((value, entry.name))
            continue
        if documented:
            choices = entry.metadata["choices"]
            told = f" One of {', '.join(choices)}." if choices and not isinstance(value, tuple) else ""
            lines.append(f"# {entry.metadata['doc']}{told}{' (CUDA-L1)' if entry.metadata['paper'] else ''}")
        lines.append(f"{entry.name} = {json.dumps(value)}")
    for section, section_name in below:
        _write(section, section_name, lines, documented)


def flat(settings: Settings) -> dict[str, Any]:
    """`section.key` -> value."""
    found: dict[str, Any] = {}
    for key, value in asdict(settings).items():
        if isinstance(value, dict):
            found |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            found[key] = value
    return found
