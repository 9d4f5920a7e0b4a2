"""The model that is trained: found, checked before hours are lost, loaded and saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
import torch
from cudal1_core.errors import UsageError
from cudal1_core.policies.generator.loading import DTYPES, Loaded, converted, is_gguf
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from cudal1_training.folder import TrainingFolder
from cudal1_training.settings import ModelSettings
from cudal1_training.tiny import make_tiny

TINY = "tiny"
ADAM = 16  # bytes a trained weight: itself, its gradient and two moments, in float32
SPARE = 1.15  # for activations and fragmentation, at the least


@dataclass(frozen=True, slots=True)
class Start:
    """Where a stage begins: weights, and an adapter on them."""

    base: str
    adapter: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def find_model(settings: ModelSettings, folder: TrainingFolder, tell: Callable[[str], None]) -> Start:
    """The model as a folder or hub id; tiny and GGUF are made into folders. Raises UsageError."""
    name = settings.name
    if not name:
        raise UsageError(
            "No model is named", "", "Add --model with a folder, a .gguf file or a hub id; tiny for a test."
        )
    if settings.adapter and not (Path(settings.adapter) / "adapter_config.json").is_file():
        raise UsageError(f"model.adapter {settings.adapter} is no LoRA adapter", "It holds no adapter_config.json.")
    if settings.adapter and settings.lora_rank == 0:
        raise UsageError("An adapter cannot be trained in full", "", "Leave model.lora_rank above 0.")
    if name == TINY:
        tiny = folder.path / "model"
        if not (tiny / "config.json").exists():
            make_tiny(tiny, folder.settings.seed)
        name = str(tiny)
    elif is_gguf(Path(name)):
        try:
            name = converted(Path(name), tell)
        except (OSError, ValueError) as error:
            raise UsageError(f"The model {name} cannot be read", str(error)) from error
    check(name, settings)
    return Start(name, settings.adapter or None)


def check(name: str, settings: ModelSettings) -> None:
    """Raises UsageError for a tokenizer without chat template and a model that cannot fit."""
    try:
        config = AutoConfig.from_pretrained(name)
        tokenizer = read_tokenizer(name, settings)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"The model {name} cannot be loaded",
            " ".join(str(error).split())[:400],
            "Give a folder with config.json and weights, a .gguf file, or the id of a model on the hub.",
        ) from error
    if not tokenizer.chat_template:
        raise UsageError(
            f"The tokenizer of {name} has no chat template",
            "Prompts are conversations; without a template a model does not know where its answer begins and ends.",
            "Take the instruct variant of the model, or give a template with --set model.chat_template=FILE.",
        )
    needed, free, place = memory(config, settings)
    if needed > free:
        advice = "a smaller model" if settings.lora_rank else "--lora-rank 16 (full training needs 16 bytes a weight)"
        raise UsageError(
            f"The model {name} does not fit: it needs {needed / 1e9:.1f} GB, {place} has {free / 1e9:.1f} GB free",
            "Weights, gradients and the optimiser's state alone are counted; activations come on top.",
            f"Take {advice}, or more processes with FSDP through accelerate's own configuration.",
        )


def memory(config: Any, settings: ModelSettings) -> tuple[float, float, str]:
    """Bytes needed at the least, bytes free, and where."""
    make: Any = AutoModelForCausalLM.from_config
    with torch.device("meta"):
        weights = sum(weight.numel() for weight in make(config).parameters())
    place = device(settings)
    size = torch.finfo(frozen_dtype(settings)).bits // 8
    needed = SPARE * weights * (size if settings.lora_rank else ADAM)
    if place == "cuda":
        return needed, float(torch.cuda.mem_get_info()[0]), "the GPU"
    return needed, float(psutil.virtual_memory().available), "the machine"


def device(settings: ModelSettings) -> str:
    if settings.device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return settings.device


def frozen_dtype(settings: ModelSettings) -> torch.dtype:
    """Weights that are all trained stay in float32: the small steps of a small learning rate vanish in bfloat16."""
    if settings.lora_rank == 0:
        return torch.float32
    return DTYPES.get(settings.dtype, torch.bfloat16 if device(settings) == "cuda" else torch.float32)


def read_tokenizer(base: str, settings: ModelSettings) -> Any:
    tokenizer = AutoTokenizer.from_pretrained(base)
    if settings.chat_template:
        try:
            tokenizer.chat_template = Path(settings.chat_template).read_text("utf-8")
        except OSError as error:
            raise UsageError(f"{settings.chat_template} cannot be read", error.strerror or "") from error
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_to_train(start: Start, settings: ModelSettings) -> tuple[Any, Any]:
    """Model and tokenizer; with LoRA a new or the given adapter is what is trained."""
    from peft import LoraConfig, PeftModel, get_peft_model

    model: Any = AutoModelForCausalLM.from_pretrained(start.base, dtype=frozen_dtype(settings))
    if start.adapter is not None:
        model = PeftModel.from_pretrained(model, start.adapter, is_trainable=True)
    elif settings.lora_rank:
        shape = LoraConfig(
            r=settings.lora_rank, lora_alpha=settings.lora_alpha, target_modules="all-linear", task_type="CAUSAL_LM"
        )
        model = get_peft_model(model, shape)
    return model, read_tokenizer(start.base, settings)


def load_to_write(start: Start, settings: ModelSettings) -> Loaded:
    """The model as the policies' generator loads it."""
    from peft import PeftModel

    model: Any = AutoModelForCausalLM.from_pretrained(start.base, dtype=frozen_dtype(settings))
    if start.adapter is not None:
        model = PeftModel.from_pretrained(model, start.adapter)
    model = model.to(device(settings)).eval()
    tokenizer = read_tokenizer(start.base, settings)
    ends = model.generation_config.eos_token_id
    known = {ends} if isinstance(ends, int) else set(ends or ())
    if tokenizer.eos_token_id is not None:
        known.add(tokenizer.eos_token_id)
    return Loaded(model, tokenizer, context_of(model), frozenset(known))


def context_of(model: Any) -> int:
    """Tokens of prompt and answer together."""
    return int(getattr(model.config.get_text_config(), "max_position_embeddings", 4096))


def save(model: Any, tokenizer: Any, folder: Path, start: Start) -> Start:
    """What was trained, as the next stage and the policies take it."""
    from peft import PeftModel

    model.save_pretrained(folder, **({"selected_adapters": ["default"]} if isinstance(model, PeftModel) else {}))
    tokenizer.save_pretrained(folder)
    if isinstance(model, PeftModel):
        return Start(start.base, str(folder))
    return Start(str(folder))


def bytes_of(model: Any) -> int:
    """About what a checkpoint of it takes: what is trained, with the optimiser's two moments."""
    return sum(weight.numel() * 12 for weight in model.parameters() if weight.requires_grad)
