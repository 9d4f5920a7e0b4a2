"""The model is looked at before hours are lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="trl is not installed")

from cudal1_core.errors import UsageError
from cudal1_core.policies.generator.streams import encode
from cudal1_training import models
from cudal1_training.settings import ModelSettings
from cudal1_training.tiny import make_tiny
from cudal1_training.writing import Writer, prompt_tokens


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny") / "model"
    make_tiny(folder, 0)
    return folder


@pytest.fixture
def copy(tiny: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny, tmp_path / "model"))


def test_a_tokenizer_without_chat_template_is_refused_and_one_can_be_given(copy: Path, tmp_path: Path) -> None:
    (copy / "chat_template.jinja").unlink()
    with pytest.raises(UsageError, match="no chat template") as caught:
        models.check(str(copy), ModelSettings())
    assert "model.chat_template" in caught.value.next_step
    template = tmp_path / "template.jinja"
    template.write_text("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}")
    models.check(str(copy), ModelSettings(chat_template=str(template)))


def test_a_model_that_cannot_fit_is_refused_before_it_is_read(copy: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    sizes = {"hidden_size": 65536, "intermediate_size": 262144, "num_hidden_layers": 200, "num_attention_heads": 64}
    sizes |= {"num_key_value_heads": 64, "head_dim": 1024}
    (copy / "config.json").write_text(json.dumps({**config, **sizes}))
    with pytest.raises(UsageError, match="does not fit") as caught:
        models.check(str(copy), ModelSettings(device="cpu"))
    assert "GB" in caught.value.title


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be loaded"):
        models.check(str(tmp_path), ModelSettings())


def test_an_adapter_and_full_weights_come_back_as_they_were_saved(tiny: Path, tmp_path: Path) -> None:
    for rank, name in ((4, "lora"), (0, "full")):
        settings = ModelSettings(lora_rank=rank, device="cpu")
        model, tokenizer = models.load_to_train(models.Start(str(tiny)), settings)
        for weight in model.parameters():
            if weight.requires_grad:
                weight.data.normal_(0, 0.1)
        saved = models.save(model, tokenizer, tmp_path / name, models.Start(str(tiny)))
        assert (saved.adapter is None) == (rank == 0)
        loaded = models.load_to_write(saved, settings)
        ids = loaded.tokenizer("class ModelNew", return_tensors="pt")["input_ids"]
        difference = loaded.model(ids).logits - model.eval()(ids).logits
        assert float(difference.detach().abs().max()) < 1e-4


def test_prompts_are_counted_and_written_as_the_policies_do(tiny: Path) -> None:
    loaded = models.load_to_write(models.Start(str(tiny)), ModelSettings(device="cpu"))
    prompt = "Write `ModelNew`.\nNow, with accents: é"
    assert prompt_tokens(loaded.tokenizer, prompt) == len(encode(loaded, [{"role": "user", "content": prompt}]))
    told: list[object] = []
    writer = Writer(loaded, told.append)
    texts = writer.write(prompt, ["a", "b"], longest=12, temperature=1.0, seed=1)
    assert texts == writer.write(prompt, ["a", "b"], longest=12, temperature=1.0, seed=1)
    assert texts[0] != texts[1]
    assert told
