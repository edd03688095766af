"""The weights that a training begins with: those of an earlier model, token by token, or random
ones that know what phrases mean and can look things up (``training/heads.py``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from trustlab.meaning.encoder import Encoder as SentenceEncoder

from .heads import write_heads
from .tokenizer import WINDOW
from .world import World

SHAPE = {
    "hidden_size": 256,
    "intermediate_size": 672,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
}
THETA = 5e7
WEIGHTS = "model.safetensors"
CLEARED = 40
"""Leading dimensions of the embeddings that hold nothing random at the start: what the heads
compare stands there."""
MEANING = 1.0
"""Length of what a token means, in its embedding at the start, by the length of the random part."""
PATIENT = "\nPatient: "
"""The token before what a patient says."""
RIDGE = 3.0


def bare(tokenizer: Any, **shape: int) -> LlamaForCausalLM:
    """A Llama with random weights, as large as the tokenizer asks; ``shape``: in place of
    :data:`SHAPE`."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            max_position_embeddings=WINDOW,
            tie_word_embeddings=True,
            rope_parameters={"rope_type": "default", "rope_theta": THETA},
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            **SHAPE | shape,  # type: ignore[arg-type]
        )
    )


def new_model(tokenizer: Any, seed: int, **shape: int) -> LlamaForCausalLM:
    """One that begins with nothing learned: embeddings with their meanings, and the heads."""
    torch.manual_seed(seed)
    model: Any = bare(tokenizer, **shape)
    table = model.get_input_embeddings().weight
    hidden = table.shape[1]
    with torch.no_grad():
        length = table.norm(dim=1).median()
        table[:, : min(CLEARED, hidden // 4)] = 0
        table += MEANING * length * meanings(tokenizer, hidden)
    write_heads(model, tokenizer.convert_tokens_to_ids(PATIENT), seed)
    return model


def continued(tokenizer: Any, source: Path) -> LlamaForCausalLM:
    """One with the weights of a folder, token by token: what a new vocabulary shares with the old
    one is kept; a new token begins where a ridge regression from the sentence encoder's vectors to
    the old tokens' weights puts it, or near the mean of all."""
    torch.manual_seed(1)
    model: Any = bare(tokenizer)
    saved = load_file(source / WEIGHTS)
    old = AutoTokenizer.from_pretrained(source).get_vocab()
    table, known = "model.embed_tokens.weight", tokenizer.get_vocab()
    before = saved[table].float()
    shared = [t for t in known if t in old]
    new = [t for t in known if t not in old and sum(map(str.isalpha, t)) > 2]
    fresh = before.mean(0) + 0.5 * before.std(0) * torch.randn(len(tokenizer), before.shape[1])
    if new:
        told = [t for t in shared if sum(map(str.isalpha, t)) > 2]
        vectors = torch.from_numpy(SentenceEncoder().encode([t.strip() for t in told + new]))
        of_old = before[[old[t] for t in told]]
        from_, to = vectors[: len(told)], of_old - of_old.mean(0)
        middle = from_.mean(0)
        from_ = from_ - middle
        square = from_.T @ from_ + RIDGE * torch.eye(from_.shape[1])
        map_ = torch.linalg.solve(square, from_.T @ to)
        guess = of_old.mean(0) + (vectors[len(told) :] - middle) @ map_
        fresh[[known[t] for t in new]] = guess
    fresh[[known[t] for t in shared]] = before[[old[t] for t in shared]]
    rest = {k: v.float() for k, v in saved.items() if k not in (table, "lm_head.weight")}
    model.load_state_dict(rest | {table: fresh}, strict=False)
    model.tie_weights()
    return model


def meanings(tokenizer: Any, hidden: int) -> torch.Tensor:
    """What each token means to the packaged sentence encoder, shape (vocabulary, hidden), rows of
    length 1 or 0.

    Phrases, sentences and words are encoded and centred; to a wording of a finding in the table the
    finding's name is added. Their leading principal components are kept, in that order. Marks,
    pieces of names and of JSON get nothing. Embeddings that begin with this let a criterion find
    the answer that speaks of it: otherwise each of some thousand pairs has to be learned by itself.
    """
    world = World()
    texts = [tokenizer.convert_ids_to_tokens(i) for i in range(len(tokenizer))]
    names = {
        name[i : i + 4]
        for name in (c.name for c in world.conditions)
        for i in range(0, len(name), 4)
    }
    said = [
        i
        for i, t in enumerate(texts)
        if sum(map(str.isalpha, t)) > 2 and t not in names and not set(t) & set('{}"<>|')
    ]
    vectors = SentenceEncoder().encode([texts[i].strip() for i in said])
    vectors = unit(vectors - vectors.mean(0))
    row = {texts[i]: k for k, i in enumerate(said)}
    found = {row[t]: row[name] for t, name in worded(world).items() if t in row and name in row}
    together = vectors.copy()
    together[list(found)] += vectors[list(found.values())]
    together = together @ np.linalg.svd(together, full_matrices=False)[2][: hidden - 1].T
    rows = np.zeros((len(texts), hidden), dtype=np.float32)
    rows[said, : together.shape[1]] = unit(together)
    return torch.from_numpy(rows)


def unit(rows: np.ndarray) -> np.ndarray:
    """Each row at length 1."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def worded(world: World) -> dict[str, str]:
    """The table's wordings of each finding, cut at their slots as tokens are, with the finding's
    name."""
    texts = {
        text: f.name for f in world.knowledge.findings.values() for text in (*f.affirm, *f.deny)
    }
    return {piece: name for text, name in texts.items() for piece in text.split("{value}")}
