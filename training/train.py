"""Train the embedded models from nothing: ``python -m training.train`` (resumes from its last
checkpoint).

Two cores, no GPU. Seeds are fixed; the data never repeat, so every step sees new patients. No real
patient is met here: progress is measured on generated ones.

Both models come off one trunk: training at a constant learning rate, which can stop anywhere. From
the trunk after so many examples a branch runs the rate down to nothing; that is the finished model.
``embedded`` branches early, ``embedded-closed`` is the same trunk trained on for longer.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from trustlab.meaning.encoder import Encoder as SentenceEncoder
from trustlab.paths import DATA, ROOT

from .evidence import KEYS
from .heads import write_heads
from .replies import (
    CLINIC,
    FIRST,
    LATER,
    MORE_TALK,
    MOST_TALK,
    REVIEWS,
    SKILLS,
    WITH_TALK,
    Example,
    example,
)
from .tokenizer import WINDOW, build_tokenizer
from .world import World

RECIPE = {
    "pool": 1200,
    "first": 4,
    "later": 72,
    "talk": 112,
    "more_talk": 128,
    "most_talk": 140,
    "clinic": 160,
    "reviews": 192,
    "batch_tokens": 3072,
    "lr": 1.2e-3,
    "warmup": 3_000,
    "seed": 1,
    "hidden": 256,
    "layers": 4,
    "heads": 4,
    "inner": 672,
    "theta": 5e7,
}
BRANCHES = {"embedded": (226, 10), "embedded-closed": (232, 12)}
"""Model -> pools of the trunk before its branch, and pools of the branch itself."""
STAGES = {
    "reviews": REVIEWS,
    "clinic": CLINIC,
    "most_talk": MOST_TALK,
    "more_talk": MORE_TALK,
    "talk": WITH_TALK,
    "later": LATER,
    "first": SKILLS,
}
"""From which pool of the recipe on which mixture is drawn, the last stage first; :data:`FIRST`
before the ``first``."""

LINES = re.compile(r"(?=\n)")
"""Where lines are cut: each begins with its line break, as in the tokenizer."""
CLEARED = 40
"""Leading dimensions of the embeddings that hold nothing random at the start: what the heads
compare stands there."""
MEANING = 1.0
"""Length of what a token means, in its embedding at the start, by the length of the random part."""
Soft = list[dict[int, float] | None]
"""For each token of a reply: what could stand there instead, with its exact chance; ``None`` where
the token is certain."""
Batch = list[tuple[list[int], list[int], Soft]]
"""(prompt ids, reply ids, their chances) triples."""
PATIENT = "\nPatient: "
"""The token before what a patient says."""
FIXED_SHARE, LONG = 0.3, 20
"""Share of a summary's keys that are scored in replies longer than so many tokens: they are learned
at once."""


def new_model(tokenizer: Any, recipe: dict) -> LlamaForCausalLM:
    """A Llama with random weights, seeded."""
    torch.manual_seed(recipe["seed"])
    model: Any = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=recipe["hidden"],
            intermediate_size=recipe["inner"],
            num_hidden_layers=recipe["layers"],
            num_attention_heads=recipe["heads"],
            num_key_value_heads=recipe["heads"],
            max_position_embeddings=WINDOW,
            tie_word_embeddings=True,
            rope_parameters={"rope_type": "default", "rope_theta": recipe["theta"]},
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    )
    table = model.get_input_embeddings().weight
    with torch.no_grad():
        length = table.norm(dim=1).median()
        table[:, : min(CLEARED, recipe["hidden"] // 4)] = 0
        table += MEANING * length * meanings(tokenizer, recipe["hidden"])
    write_heads(model, tokenizer.convert_tokens_to_ids(PATIENT), recipe["seed"])
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


class Encoder:
    """Examples to token ids, remembering the lines it has met (no token reaches over a line's
    beginning)."""

    def __init__(self, tokenizer: Any, world: World):
        self.tokenizer, self.known = tokenizer, {}
        self.answers = [
            [*self.line(f"[{c.name}]"), tokenizer.eos_token_id] for c in world.conditions
        ]
        self.verdicts = [self.line(word)[0] for word in ("True", "False")]
        self.fixed = {i for piece in KEYS for i in self.line(piece)}

    def line(self, text: str) -> list[int]:
        if text not in self.known:
            if len(self.known) > 200_000:
                self.known.clear()
            self.known[text] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return self.known[text]

    def lines(self, text: str) -> list[int]:
        return [i for line in LINES.split(text) for i in self.line(line)]

    def chances(self, e: Example, reply: list[int]) -> Soft:
        """The exact chances of each token: a diagnosis could be another, a judgement the
        opposite."""
        if e.skill == "p_true":
            assert e.chances is not None
            return [dict(zip(self.verdicts, e.chances, strict=True)), *([None] * (len(reply) - 1))]
        if e.chances is None and e.options is None:
            return [None] * len(reply)
        every = (
            self.answers
            if e.options is None
            else [[*self.lines(o), self.tokenizer.eos_token_id] for o in e.options]
        )
        chances = e.chances if e.options is None else list(e.options.values())
        assert chances is not None
        soft: Soft = []
        for i in range(len(reply)):
            found: dict[int, float] = {}
            for answer, p in zip(every, chances, strict=True):
                if p > 1e-5 and answer[:i] == reply[:i]:
                    found[answer[i]] = found.get(answer[i], 0.0) + float(p)
            total = sum(found.values())
            soft.append({k: v / total for k, v in found.items()} if len(found) > 1 else None)
        return soft

    def __call__(self, e: Example) -> tuple[list[int], list[int], Soft]:
        text = self.tokenizer.apply_chat_template(
            [{"role": r, "content": c} for r, c in e.messages],
            add_generation_prompt=True,
            tokenize=False,
        )
        reply = self.lines(e.reply) + [self.tokenizer.eos_token_id] * (e.skill != "lookup")
        return self.lines(text), reply, self.chances(e, reply)


def shares(recipe: dict, number: int, fork: int | None = None) -> dict[str, float]:
    """The mixture of skills in pool ``number``; a branch keeps what the trunk had in its last pool
    before ``fork``."""
    number = number if fork is None else min(number, fork - 1)
    return next(
        (mixture for begin, mixture in STAGES.items() if number >= recipe.get(begin, number + 1)),
        FIRST,
    )


def pool_of_batches(
    world: World, encode: Encoder, recipe: dict, number: int, fork: int | None = None
) -> list[Batch]:
    """The batches of pool ``number``, which depend on the seed, that number and ``fork`` only.

    A branch that leaves the trunk at pool ``fork`` keeps the mixture it left with. A pool is sorted
    by length and cut into batches of about ``batch_tokens`` tokens, so that little is padding.
    """
    rng = np.random.default_rng([recipe["seed"], number])
    mixture = shares(recipe, number, fork)
    rows = sorted(
        (encode(example(world, rng, shares=mixture)) for _ in range(recipe["pool"])),
        key=lambda r: len(r[0]) + len(r[1]),
    )
    for _, reply, soft in rows:
        for i, token in enumerate(reply):
            if len(reply) > LONG and token in encode.fixed and rng.random() > FIXED_SHARE:
                soft[i] = {}
    cut = []
    while rows:
        size = max(1, recipe["batch_tokens"] // width(rows[-1:]))
        cut.append(rows[-size:])
        rows = rows[:-size]
    return [cut[i] for i in rng.permutation(len(cut))]


def pools(recipe: dict, numbers: range, fork: int | None = None) -> Iterator[list[Batch]]:
    """The batches of each pool in turn; the next pool is made in a second process meanwhile."""
    with ProcessPoolExecutor(1, get_context("spawn"), _start) as worker:
        coming = worker.submit(_make, recipe, numbers[0], fork) if numbers else None
        for number in numbers:
            batches = coming.result()  # pyright: ignore[reportOptionalMemberAccess]
            coming = (
                worker.submit(_make, recipe, number + 1, fork) if number + 1 in numbers else None
            )
            yield batches


def _start() -> None:
    global _made_with
    world = World()
    _made_with = (world, Encoder(build_tokenizer(world), world))


def _make(recipe: dict, number: int, fork: int | None) -> list[Batch]:
    return pool_of_batches(*_made_with, recipe, number, fork)


def width(rows: Batch) -> int:
    """The padded length: a multiple of 8."""
    return min(-(-max(len(p) + len(r) for p, r, _ in rows) // 8) * 8, WINDOW)


Target = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def tensors(rows: Batch, pad: int) -> tuple[torch.Tensor, torch.Tensor, Target]:
    """Right-padded ids, targets (-100 where nothing is scored), and the chances as (row of scored
    tokens, token, chance).

    A row's weight, in the third tensor, is shared among its possible tokens; certain tokens have
    chance 1.
    """
    ids = torch.full((len(rows), width(rows)), pad)
    labels = torch.full((len(rows), width(rows)), -100)
    at, token, chance, scored = [], [], [], 0
    for i, (p, r, soft) in enumerate(rows):
        p = p[: WINDOW - len(r)]
        ids[i, : len(p) + len(r)] = torch.tensor(p + r)
        for k, (t, s) in enumerate(zip(r, soft, strict=True)):
            if s == {}:
                continue
            labels[i, len(p) - 1 + k] = t
            options = {t: 1.0} if s is None else s
            at += [scored] * len(options)
            token += options
            chance += [c / len(r) ** 0.5 for c in options.values()]
            scored += 1
    return ids, labels, (torch.tensor(at), torch.tensor(token), torch.tensor(chance))


def loss_of(model: LlamaForCausalLM, ids, labels, target: Target) -> torch.Tensor:
    """Weighted mean cross-entropy of the reply's tokens; the vocabulary projection is made only
    where it is scored.

    A token weighs one over the square root of its reply's length, or the long replies would drown
    the short. Padding stands on the right of a causal model, so no attention mask is needed.
    """
    hidden = model.model(input_ids=ids).last_hidden_state
    logits = model.lm_head(hidden[labels != -100])
    at, token, chance = target
    found = logits[at, token] - logits.logsumexp(-1)[at]
    return -(chance * found).sum() / chance.sum()


def rate(seen: int, recipe: dict, branch: tuple[int, int] | None = None) -> float:
    """The learning rate after ``seen`` examples: a warm-up, then constant; on a branch from pool a
    of b pools, down to 2 %."""
    lr = recipe["lr"] * min(1, (seen + 200) / recipe["warmup"])
    if branch is None:
        return lr
    done = (seen / recipe["pool"] - branch[0]) / branch[1]
    return lr * (1 - 0.98 * min(max(done, 0.0), 1.0))


class Trainer:
    """A model, its optimiser and how far they are; saved and resumed as one file."""

    def __init__(self, recipe: dict):
        self.recipe = recipe
        self.tokenizer: Any = build_tokenizer(World())
        self.model = new_model(self.tokenizer, recipe)
        self.optimiser = torch.optim.AdamW(
            self.model.parameters(),
            lr=recipe["lr"],
            weight_decay=0.05,
            betas=(0.9, 0.98),
            fused=True,
        )
        self.state: dict = {"pools": 0, "steps": 0, "examples": 0, "tokens": 0, "seconds": 0.0}

    def load(self, path: Path) -> None:
        """Take up where ``path`` was written."""
        saved = torch.load(path, weights_only=True)
        self.model.load_state_dict(saved["model"])
        self.optimiser.load_state_dict(saved["optimiser"])
        self.state = saved["state"]

    def save(self, path: Path) -> None:
        """Write everything, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimiser": self.optimiser.state_dict(),
                "state": self.state,
            },
            part,
        )
        part.replace(path)

    def run(
        self,
        until: int,
        path: Path,
        branch: tuple[int, int] | None = None,
        checkpoint_every: int = 4,
    ) -> None:
        """Train up to pool ``until``, saving to ``path`` now and then and at the end."""
        began, numbers = time.time(), range(self.state["pools"], until)
        for number, batches in zip(
            numbers, pools(self.recipe, numbers, branch and branch[0]), strict=True
        ):
            losses = []
            for rows in batches:
                lr = rate(self.state["examples"], self.recipe, branch)
                losses.append(
                    step(self.model, self.optimiser, rows, self.tokenizer.pad_token_id, lr)
                )
                self.state["examples"] += len(rows)
                self.state["steps"] += 1
                self.state["tokens"] += sum(len(p) + len(r) for p, r, _ in rows)
            seconds, began = round(self.state["seconds"] + time.time() - began, 1), time.time()
            self.state |= {
                "pools": number + 1,
                "seconds": seconds,
                "loss": round(float(np.mean(losses)), 4),
            }
            print(json.dumps(self.state), flush=True)
            if (number + 1) % checkpoint_every == 0 or number + 1 == until:
                self.save(path)


def train(
    name: str, recipe: dict, folder: Path, branches: dict[str, tuple[int, int]] = BRANCHES
) -> LlamaForCausalLM:
    """Model ``name``: the trunk as far as needed (kept where each branch leaves it), then the
    branch."""
    at, length = branches[name]
    trunk, fork, last = folder / "trunk.pt", folder / f"trunk-{at}.pt", folder / f"{name}.pt"
    trainer = Trainer(recipe)
    if not last.exists():
        if not fork.exists():
            if trunk.exists():
                trainer.load(trunk)
            if trainer.state["pools"] > at:
                raise ValueError(
                    f"the trunk has {trainer.state['pools']} pools, {name} leaves it at {at}: begin"
                    " a new one"
                )
            trainer.run(at, trunk)
            trainer.save(fork)
        trainer.load(fork)
        trainer.save(last)
    trainer.load(last)
    trainer.run(at + length, last, (at, length))
    (folder / f"{name}.json").write_text(
        json.dumps({**trainer.state, "recipe": recipe, "branch": [at, length]}, indent=1) + "\n"
    )
    return trainer.model


def step(
    model: LlamaForCausalLM, optimiser: torch.optim.Optimizer, rows: Batch, pad: int, lr: float
) -> float:
    """One update; returns the loss."""
    for group in optimiser.param_groups:
        group["lr"] = lr
    ids, labels, soft = tensors(rows, pad)
    loss = loss_of(model, ids, labels, soft)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    optimiser.zero_grad()
    return loss.item()


def export(model: LlamaForCausalLM, target: Path) -> None:
    """Write the model as half-precision safetensors with its tokenizer: what the Hugging Face
    backend opens."""
    target.mkdir(parents=True, exist_ok=True)
    model.half().save_pretrained(target)
    build_tokenizer(World()).save_pretrained(target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", choices=list(BRANCHES), help="one model; both where not given")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    for name in [args.name] if args.name else BRANCHES:
        export(train(name, RECIPE, ROOT / "training" / "checkpoints"), DATA / "models" / name)


if __name__ == "__main__":
    main()
