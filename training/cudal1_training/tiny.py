"""A small random language model with a tokenizer of its own, made here: for tests and a first look, not for results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from cudal1_core.templates import Templates
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from cudal1_training import synthetic

VOCABULARY = 1024
CONTEXT = 8192  # tokens
END = "<end>"
TEMPLATE = (
    "{% for m in messages %}[{{ m.role }}]\n{{ m.content }}{% if m.role == 'assistant' %}<end>{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]\n{% endif %}"
)


def make_tiny(folder: Path, seed: int) -> None:
    """About 0.1 million weights; every byte can be written."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    words = Templates()
    texts = [words.contrastive.template, words.first.template, words.compare.template]
    texts += [one.source for one in synthetic.generate(28, 0, small=True)]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    make: Any = PreTrainedTokenizerFast
    fast = make(tokenizer_object=tokenizer, eos_token=END, pad_token=END)
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = LlamaConfig(
            vocab_size=len(fast),
            hidden_size=48,
            intermediate_size=96,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=CONTEXT,
            eos_token_id=fast.eos_token_id,
            pad_token_id=fast.pad_token_id,
            bos_token_id=None,
            tie_word_embeddings=True,
        )
        LlamaForCausalLM(config).save_pretrained(folder)
