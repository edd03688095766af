"""Train an embedded model from nothing: ``python -m training.train`` (resumes from its last checkpoint).

Two cores, no GPU. Seeds are fixed; the data never repeat, so every step sees new patients. No real patient is met here:
progress is measured on generated ones.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from trustlab.paths import DATA, ROOT

from .replies import Example, example
from .tokenizer import WINDOW, build_tokenizer
from .world import World

RECIPE = {
    "examples": 204_000,
    "pool": 1200,
    "batch_tokens": 6144,
    "lr": 1.6e-3,
    "warmup": 12_000,
    "seed": 1,
    "hidden": 256,
    "layers": 4,
    "heads": 4,
    "inner": 672,
}


Batch = list[tuple[list[int], list[int]]]
"""(prompt ids, reply ids) pairs."""

SHORT, SHORT_WEIGHT = 4, 3.0
"""Replies of at most so many tokens (a judgement, a score) count so much more a token, or the long names drown them."""


def new_model(tokenizer: Any, recipe: dict) -> LlamaForCausalLM:
    """A Llama with random weights, seeded."""
    torch.manual_seed(recipe["seed"])
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=recipe["hidden"],
            intermediate_size=recipe["inner"],
            num_hidden_layers=recipe["layers"],
            num_attention_heads=recipe["heads"],
            num_key_value_heads=recipe["heads"],
            max_position_embeddings=WINDOW,
            tie_word_embeddings=True,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    )


class Encoder:
    """Examples to token ids, remembering the lines it has met (the tokenizer never merges across a line's end)."""

    def __init__(self, tokenizer: Any):
        self.tokenizer, self.known = tokenizer, {}

    def line(self, text: str) -> list[int]:
        if text not in self.known:
            if len(self.known) > 200_000:
                self.known.clear()
            self.known[text] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return self.known[text]

    def __call__(self, e: Example) -> tuple[list[int], list[int]]:
        text = self.tokenizer.apply_chat_template(
            [{"role": r, "content": c} for r, c in e.messages], add_generation_prompt=True, tokenize=False
        )
        prompt = [i for line in text.splitlines(keepends=True) for i in self.line(line)]
        return prompt, [*self.line(e.reply), self.tokenizer.eos_token_id]


def pool_of_batches(world: World, encode: Encoder, recipe: dict, number: int) -> list[Batch]:
    """The batches of pool ``number``, which depend on the seed and that number only.

    A pool is sorted by length and cut into batches of about ``batch_tokens`` tokens, so that little is padding.
    """
    rng = np.random.default_rng([recipe["seed"], number])
    rows = sorted((encode(example(world, rng)) for _ in range(recipe["pool"])), key=lambda r: len(r[0]) + len(r[1]))
    cut = []
    while rows:
        size = max(1, recipe["batch_tokens"] // width(rows[-1:]))
        cut.append(rows[-size:])
        rows = rows[:-size]
    return [cut[i] for i in rng.permutation(len(cut))]


def width(rows: Batch) -> int:
    """The padded length: a multiple of 16, which keeps the number of different shapes small."""
    return min(-(-max(len(p) + len(r) for p, r in rows) // 16) * 16, WINDOW)


def tensors(rows: Batch, pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Right-padded ids, and targets (-100 everywhere but the reply)."""
    ids = torch.full((len(rows), width(rows)), pad)
    labels = torch.full((len(rows), width(rows)), -100)
    for i, (p, r) in enumerate(rows):
        p = p[: WINDOW - len(r)]
        ids[i, : len(p) + len(r)] = torch.tensor(p + r)
        labels[i, len(p) - 1 : len(p) + len(r) - 1] = torch.tensor(r)
    return ids, labels


def loss_of(model: LlamaForCausalLM, ids, labels) -> torch.Tensor:
    """Mean cross-entropy of the reply's tokens; the vocabulary projection is made only where it is scored.

    Padding stands on the right of a causal model, so no attention mask is needed.
    """
    hidden = model.model(input_ids=ids).last_hidden_state
    at = labels != -100
    loss = torch.nn.functional.cross_entropy(model.lm_head(hidden[at]).float(), labels[at], reduction="none")
    short = (at.sum(1, keepdim=True) <= SHORT).expand_as(at)[at]
    weight = 1 + (SHORT_WEIGHT - 1) * short
    return (weight * loss).sum() / weight.sum()


def rate(seen: int, recipe: dict) -> float:
    """The learning rate after ``seen`` examples: a warm-up, then a cosine down to 5 %."""
    done = min(seen / recipe["examples"], 1.0)
    return recipe["lr"] * min(1, (seen + 200) / recipe["warmup"]) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))


def train(folder: Path, recipe: dict, *, checkpoint_every: int = 10) -> LlamaForCausalLM:
    """Run or resume the recipe; a checkpoint goes to ``folder`` every ``checkpoint_every`` pools."""
    folder.mkdir(parents=True, exist_ok=True)
    world = World()
    tokenizer: Any = build_tokenizer(world)
    model, encode = new_model(tokenizer, recipe), Encoder(tokenizer)
    optimiser = torch.optim.AdamW(model.parameters(), lr=recipe["lr"], weight_decay=0.05, betas=(0.9, 0.98), fused=True)
    state: dict = {"pools": 0, "steps": 0, "examples": 0, "tokens": 0, "seconds": 0.0}
    last = folder / "last.pt"
    if last.exists():
        saved = torch.load(last, weights_only=True)
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        state = saved["state"]
    began, n_pools = time.time() - state["seconds"], -(-recipe["examples"] // recipe["pool"])
    for number in range(state["pools"], n_pools):
        losses = []
        for rows in pool_of_batches(world, encode, recipe, number):
            losses.append(step(model, optimiser, rows, tokenizer.pad_token_id, rate(state["examples"], recipe)))
            state["examples"] += len(rows)
            state["steps"] += 1
            state["tokens"] += sum(len(p) + len(r) for p, r in rows)
        state |= {"pools": number + 1, "seconds": round(time.time() - began, 1), "loss": round(float(np.mean(losses)), 4)}
        print(json.dumps(state), flush=True)
        if (number + 1) % checkpoint_every == 0 or number + 1 == n_pools:
            torch.save({"model": model.state_dict(), "optimiser": optimiser.state_dict(), "state": state}, folder / "new.pt")
            (folder / "new.pt").replace(last)
    (folder / "state.json").write_text(json.dumps({**state, "recipe": recipe}, indent=1) + "\n")
    return model


def step(model: LlamaForCausalLM, optimiser: torch.optim.Optimizer, rows: Batch, pad: int, lr: float) -> float:
    """One update; returns the loss."""
    for group in optimiser.param_groups:
        group["lr"] = lr
    ids, labels = tensors(rows, pad)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_of(model, ids, labels)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    optimiser.zero_grad()
    return loss.item()


def export(model: LlamaForCausalLM, target: Path) -> None:
    """Write the model as half-precision safetensors with its tokenizer: what the Hugging Face backend opens."""
    target.mkdir(parents=True, exist_ok=True)
    model.half().save_pretrained(target)
    build_tokenizer(World()).save_pretrained(target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="embedded", help="folder under data/models and training/checkpoints")
    parser.add_argument("--threads", type=int, default=2)
    for key, value in RECIPE.items():
        parser.add_argument(f"--{key}", type=type(value), default=value)
    args = vars(parser.parse_args())
    torch.set_num_threads(args.pop("threads"))
    name = args.pop("name")
    model = train(ROOT / "training" / "checkpoints" / name, args)
    export(model, DATA / "models" / name)


if __name__ == "__main__":
    main()
