"""A model from a folder, a hub id or GGUF weights, which are converted once and kept."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

Tell = Callable[[str], None]
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(slots=True)
class Loaded:
    model: Any  # a causal language model of transformers, with adapters where one was given
    tokenizer: Any
    context: int  # tokens of prompt and answer together
    ends: frozenset[int]  # tokens that end an answer


def load(name: str, adapter: str | None, device: str, dtype: str, tell: Tell) -> Loaded:
    """Raises OSError, ValueError or RuntimeError as transformers does."""
    place = resolved(device)
    kind = DTYPES.get(dtype, torch.bfloat16 if place.startswith("cuda") else torch.float32)
    source = converted(Path(name), tell) if is_gguf(Path(name)) else name
    tell("reading the tokenizer")
    tokenizer = AutoTokenizer.from_pretrained(source)
    tell("reading the weights")
    model: Any = AutoModelForCausalLM.from_pretrained(source, dtype=kind)
    if adapter is not None:
        tell("reading the adapter")
        model = adapted(model, adapter)
    tell(f"moving the model to {place}")
    model = model.to(place).eval()
    config = model.config.get_text_config()
    ends = model.generation_config.eos_token_id
    known = {ends} if isinstance(ends, int) else set(ends or ())
    if tokenizer.eos_token_id is not None:
        known.add(tokenizer.eos_token_id)
    return Loaded(model, tokenizer, int(getattr(config, "max_position_embeddings", 4096)), frozenset(known))


def adapted(model: Any, folder: str) -> Any:
    """The model with this LoRA adapter in place of an earlier one."""
    from peft import PeftModel

    if not isinstance(model, PeftModel):
        return PeftModel.from_pretrained(model, folder).eval()
    old = model.active_adapter
    new = "even" if old != "even" else "odd"
    model.load_adapter(folder, adapter_name=new)
    model.set_adapter(new)
    model.delete_adapter(old)
    return model.eval()


def resolved(device: str) -> str:
    if device != "auto":
        return device
    return "cuda:0" if torch.cuda.is_available() else "cpu"


def is_gguf(path: Path) -> bool:
    return path.suffix == ".gguf" or (
        path.is_dir() and not (path / "config.json").exists() and any(path.glob("*.gguf"))
    )


def converted(path: Path, tell: Tell, cache: Path | None = None) -> str:
    """The folder of plain weights made from a GGUF file, now or earlier."""
    files = [path] if path.is_file() else sorted(path.glob("*.gguf"))
    if len(files) != 1:
        raise ValueError(f"{path} holds {len(files)} GGUF files; name one of them")
    file = files[0].resolve()
    state = file.stat()
    key = hashlib.sha256(f"{file}\n{state.st_size}\n{state.st_mtime_ns}".encode()).hexdigest()[:16]
    home = cache or platformdirs.user_cache_path("cudal1-tui") / "gguf"
    target = home / f"{file.stem}-{key}"
    if target.is_dir():
        return str(target)
    from transformers import GgufConfig

    home.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=".building-", dir=home))
    try:
        tell("converting GGUF: tokenizer")
        tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
        tell("converting GGUF: weights (once; kept for next time)")
        model = AutoModelForCausalLM.from_pretrained(
            file.parent,
            gguf_file=file.name,
            quantization_config=GgufConfig(dequantize=True),
            dtype=torch.bfloat16,
        )
        tokenizer.save_pretrained(building)
        model.save_pretrained(building)
        if not target.is_dir():  # another process may have been first
            os.rename(building, target)  # noqa: PTH104
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return str(target)
