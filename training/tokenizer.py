"""A byte-level BPE learned on the prompts and phrasings, without splitting at spaces: a whole line becomes a few tokens.

Names of conditions are shown to it only in pieces of four letters, so that an answer has several tokens.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from trustlab.knowledge import answer_text
from trustlab.prompts import names, render

from .world import World

SPECIAL = ["<pad>", "<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>"]
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] }}"
    "{% if m['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
WINDOW = 1024


def lines(world: World, rng: np.random.Generator, n_patients: int = 4000):
    """The text the vocabulary is learned from, each as one word."""
    knowledge = world.knowledge
    for f in knowledge.findings.values():
        yield from [f"Doctor: {f.question}\n"] * 60
        for wording in range(len(f.affirm)):
            if f.form == "binary" or f.form == "flag":
                yield from _patient(answer_text(f, True, wording=wording), 40)
            else:
                before, after = f.affirm[wording].split("{value}")
                yield from [f"Patient: {before}"] * 60
                yield from [after + "\n", after] * 5
        for wording in range(len(f.deny)):
            yield from _patient(answer_text(f, False, wording=wording), 40)
    for v in knowledge.values.values():
        yield from [v.phrase, v.phrase + ", ", " and " + v.phrase, v.phrase + ".\n"] * 12
    for name in names():
        for role_text in render(name, patient="|", answer="|"):
            for part in role_text[1].replace("|", "\n|\n").splitlines(keepends=True):
                yield from [part, part.rstrip("\n")] * 400
    for c in knowledge.conditions.values():
        yield from [c.name[i : i + 4] for i in range(0, len(c.name), 4)] * 40
    yield from [str(k) for k in range(101)] * 100
    yield from ["True", "False"] * 2000


def _patient(text: str, times: int):
    return [f"Patient: {text}\n"] * times


def build_tokenizer(world: World, vocabulary: int = 10000, seed: int = 11) -> PreTrainedTokenizerFast:
    """Learn the vocabulary and wrap it as a Hugging Face tokenizer with its chat template."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split("\n", "merged_with_previous"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[*SPECIAL, "[", "]"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        max_token_length=200,
    )
    tok.train_from_iterator(lines(world, np.random.default_rng(seed)), trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tok, pad_token="<pad>", bos_token="<s>", eos_token="</s>", model_max_length=WINDOW, padding_side="left"
    )
    brackets: Any = [AddedToken("[", special=False, normalized=False), AddedToken("]", special=False, normalized=False)]
    fast.add_tokens(brackets)
    fast.chat_template = TEMPLATE
    return fast
