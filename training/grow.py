"""Take a checkpoint up under a larger vocabulary: ``python -m training.grow CHECKPOINT TOKENIZER
TARGET``.

New prompts bring new tokens. What was learned of the others is kept, the optimiser's memory too;
new tokens begin as they do in a fresh model. ``TOKENIZER`` is the folder of the tokenizer that the
checkpoint was trained with.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer

from .train import RECIPE, Trainer

EMBEDDINGS = "model.embed_tokens.weight"
TIED = "lm_head.weight"


def grow(saved: dict[str, Any], old: Any, trainer: Trainer) -> None:
    """Load ``saved``, made with the tokenizer ``old``, into a fresh ``trainer``, in place.

    Raises ``ValueError`` where the larger vocabulary lacks a token of the old one.
    """
    vocabulary, known = trainer.tokenizer.get_vocab(), old.get_vocab()
    if lost := set(known) - set(vocabulary):
        raise ValueError(
            f"{len(lost)} tokens are gone from the vocabulary, such as {sorted(lost)[0]!r}"
        )
    tokens = sorted(known, key=lambda token: known[token])
    to, source = (
        torch.tensor([vocabulary[t] for t in tokens]),
        torch.tensor([known[t] for t in tokens]),
    )
    model: Any = trainer.model
    with torch.no_grad():
        fresh = model.get_input_embeddings().weight.detach().clone()
        fresh[to] = saved["model"][EMBEDDINGS][source]
    model.load_state_dict(saved["model"] | {EMBEDDINGS: fresh, TIED: fresh})
    first = saved["optimiser"]["state"][0]
    for name in ("exp_avg", "exp_avg_sq"):
        grown = torch.zeros_like(fresh)
        grown[to] = first[name][source]
        first[name] = grown
    trainer.optimiser.load_state_dict(saved["optimiser"])
    trainer.state = saved["state"] | {
        "grown": {"examples": saved["state"]["examples"], "tokens_before": len(tokens)}
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("target", type=Path)
    args = parser.parse_args()
    trainer = Trainer(RECIPE)
    grow(
        torch.load(args.checkpoint, weights_only=True),
        AutoTokenizer.from_pretrained(args.tokenizer),
        trainer,
    )
    trainer.save(args.target)
    print(f"{len(trainer.tokenizer)} tokens, {trainer.state['examples']} examples seen")


if __name__ == "__main__":
    main()
