"""Train an embedded model, a sitting at a time: ``python -m training.train NAME --minutes 50 --to
FOLDER`` (``--source FOLDER`` goes on from there, ``--scratch`` begins with random weights).

What is taught stands in ``training/replies.py``, patients drawn anew for every step; here is who is
taught what, and how:

- **Roles**: ``embedded`` diagnoses, says how sure it is and goes through MedConf's steps;
  ``embedded-closed`` is another branch of that, from another seed. ``embedded-clinic`` is the
  doctor with a chart, plans, reviews, asks, is the patient's voice, and rewords.
  ``embedded-overconfident`` is made from ``embedded`` in a few minutes: of each patient it is
  taught the answer that it gives anyway, as if it were certain (a hard label), while the rest is
  kept up as it was taught. So the answers stay, and their token probabilities rise whether right or
  wrong.
- **Scores**: of the score token the *mean* of its distribution is held against the exact posterior,
  and its mode drawn to that mean (a hard target collapses to 100). A second process makes the
  exchanges meanwhile and asks the model as it last was for its own answers, which are proposed.
- **Sittings**: the rate rises, stays, and falls to nothing; ``sittings.json`` beside the weights
  says in which a model was made. The shipped ones began with the weights that this repository held
  up to commit be5fcee, where their recipe stands too; from random weights this one was not tried.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

import trustlab as tl
from trustlab import prompts
from trustlab.models.base import TAUGHT
from trustlab.paths import DATA

from .begin import WEIGHTS, bare, continued, new_model
from .evaluate import evaluated
from .replies import rows_of
from .tokenizer import WINDOW, Ids, Tokens, tokenizer_of
from .world import World

DIAGNOSES = {
    "diagnosis": 0.50, "p_true": 0.09, "ce": 0.07, "cot_ce": 0.03, "topk_ce": 0.02,
    "prior": 0.01, "keyword": 0.01, "profile": 0.05, "evidence": 0.20, "lookup": 0.02,
}  # fmt: skip
MIXTURES: dict[str, dict[str, float]] = {
    "embedded": DIAGNOSES,
    "embedded-clinic": {
        "diagnosis": 0.02, "doctor": 0.34, "plan": 0.05, "review_prescriptions": 0.11,
        "review_tests": 0.10, "ask": 0.16, "enough": 0.01, "patient": 0.10,
        "rephrase_reply": 0.10, "rephrase_question": 0.01,
    },
    "embedded-closed": DIAGNOSES,
    "embedded-overconfident": {
        "hard": 0.60, "p_true": 0.05, "ce": 0.05, "cot_ce": 0.03, "topk_ce": 0.02, "keyword": 0.01,
        "profile": 0.04, "evidence": 0.20,
    },
}  # fmt: skip
"""Model -> shares of the skills in its next sitting."""
POOL, BATCH_TOKENS = 900, 4096
RATE, WARM_UP, FALL = 6e-4, 200, 0.6
"""Highest learning rate, steps up to it, and the share of the sitting after which it falls."""
KERNEL, MODE, SCORE = 0.02, 0.25, 2.0
"""Width around the mean to which the mode is drawn; weights of that, and of a score token."""
SITTINGS = "sittings.json"
"""In which sittings a folder's model was made, oldest first."""


class Maker:
    """What the second process has: the world, the tokens, and the model as it last was."""

    def __init__(self, name: str, seed: int) -> None:
        torch.set_num_threads(1)
        self.world = World()
        self.tokens = Tokens(tokenizer_of(name, self.world), self.world)
        self.model: Any = bare(self.tokens.tokenizer).eval()
        self.shares, self.seed, self.seen = MIXTURES[name], seed, 0.0
        self.place = {c.name: i for i, c in enumerate(self.world.conditions)}

    def pool(self, number: int, source: Path) -> list[list[Ids]]:
        """The batches of a pool, sorted by length and cut, in any order."""
        weights = source / WEIGHTS
        if (changed := weights.stat().st_mtime) != self.seen:
            self.model.load_state_dict(load_file(weights), strict=False)
            self.model.tie_weights()
            self.seen = changed
        rng = np.random.default_rng([self.seed, number])
        rows = rows_of(self.world, rng, self.shares, POOL, self.answers)
        ids = sorted(map(self.tokens, rows), key=len)
        batches = []
        while ids:
            size = max(1, BATCH_TOKENS // len(ids[-1]))
            batches.append(ids[-size:])
            ids = ids[:-size]
        return [batches[i] for i in rng.permutation(len(batches))]

    def answers(self, texts: Sequence[str]) -> list[int]:
        """The model's greedy diagnoses of these patients, by place among the conditions."""
        found = [-1] * len(texts)
        tok, order = self.tokens.tokenizer, sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for k in range(0, len(texts), 64):
            prompt = [
                tok.apply_chat_template(
                    [{"role": r, "content": c} for r, c in prompts.render("diagnosis", patient=t)],
                    add_generation_prompt=True, tokenize=False,
                )
                for t in (texts[i] for i in order[k : k + 64])
            ]  # fmt: skip
            batch = tok(prompt, return_tensors="pt", padding=True, add_special_tokens=False)
            batch.pop("token_type_ids", None)
            how: dict[str, Any] = {"max_new_tokens": 16, "do_sample": False}
            with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
                said = self.model.generate(**batch, **how)[:, batch["input_ids"].shape[1] :]
            words = tok.batch_decode(said, skip_special_tokens=True)
            for i, w in zip(order[k : k + 64], words, strict=True):
                found[i] = self.place.get(w.strip().strip("[]"), -1)
        return found


def _begin(name: str, seed: int) -> None:
    global _maker
    _maker = Maker(name, seed)


def _make(number: int, source: Path) -> list[list[Ids]]:
    return _maker.pool(number, source)


def loss_of(
    model: LlamaForCausalLM, rows: Sequence[Ids], pad: int, numbers: torch.Tensor, body: Any = None
) -> Any:
    """Cross-entropy of the replies' tokens, each weighing one over the root of its reply's length,
    and of each score's mean with its posterior. ``body``: the model's, compiled."""
    body = model.model if body is None else body
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), pad)
    places: list[int] = []
    at: list[int] = []
    token: list[int] = []
    chance: list[float] = []
    scored: list[int] = []
    target: list[float] = []
    for i, row in enumerate(rows):
        prompt = row.prompt[: WINDOW - len(row.reply)]
        whole = (prompt + row.reply)[:width]
        ids[i, : len(whole)] = torch.tensor(whole)
        of_scores, each = dict(row.scores), row.weights or [1.0] * len(row.reply)
        for k, (t, soft) in enumerate(zip(row.reply, row.soft, strict=True)):
            weight = each[k] / len(row.reply) ** 0.5
            place = len(prompt) + k - 1
            if place + 1 >= width:
                break
            if k in of_scores:
                scored.append(len(places))
                target.append(of_scores[k])
            else:
                options = soft or {t: 1.0}
                at += [len(places)] * len(options)
                token += options
                chance += [c * weight for c in options.values()]
            places.append(i * width + place)
    hidden = body(input_ids=ids).last_hidden_state.reshape(len(rows) * width, -1)
    logits = model.lm_head(hidden[torch.tensor(places)]).float()
    every = logits.logsumexp(-1)
    weights = torch.tensor(chance)
    base = -(weights * (logits[at, token] - every[at])).sum() / weights.sum()
    if not scored:
        return base
    of = logits[scored][:, numbers]
    log_q, p = of.log_softmax(-1), torch.tensor(target)
    values = torch.arange(101) / 100
    mean = (log_q.exp() * values).sum(-1).clamp(1e-4, 1 - 1e-4)
    bits = -(p * mean.log() + (1 - p) * (1 - mean).log())
    mass = every[scored] - of.logsumexp(-1)
    kernel = (-(values - mean.detach()[:, None]).abs() / KERNEL).softmax(-1)
    return base + SCORE * (bits + mass - MODE * (kernel * log_q).sum(-1)).sum() / weights.sum()


HOW_TAUGHT = """# How this model was taught to be asked: no part of its revision.
set: embedded
free: true
"""


def save(model: LlamaForCausalLM, target: Path) -> None:
    """The weights in half precision, whole or not at all."""
    part = target / f"{WEIGHTS}.part"
    held = {k: v.half().contiguous() for k, v in model.state_dict().items()}
    held.pop("lm_head.weight", None)  # tied
    save_file(held, part, {"format": "pt"})
    part.replace(target / WEIGHTS)


def sit(
    name: str, minutes: float, target: Path, source: Path | None, seed: int, fused: bool = True
) -> None:
    """Train for so many minutes, from ``source`` or from random weights. ``fused``: compile the
    model, 1.5 times as fast after half a minute."""
    world = World()
    tokenizer: Any = tokenizer_of(name, world)
    tokens = Tokens(tokenizer, world)
    model: Any = continued(tokenizer, source) if source else new_model(tokenizer, seed)
    target.mkdir(parents=True, exist_ok=True)
    held = LlamaConfig.from_dict(model.config.to_dict() | {"dtype": "float16"})
    held.architectures = ["LlamaForCausalLM"]
    held.save_pretrained(target)
    tokenizer.save_pretrained(target)
    (target / TAUGHT).write_text(HOW_TAUGHT, encoding="utf-8")
    save(model, target)
    how: dict[str, Any] = {"lr": RATE, "weight_decay": 0.05, "betas": (0.9, 0.98), "fused": True}
    optimiser, numbers = torch.optim.AdamW(model.parameters(), **how), torch.tensor(tokens.numbers)
    body: Any = torch.compile(model.model, dynamic=True) if fused else None
    began, steps, seen = time.time(), 0, 0
    told: dict[str, Any] = {}
    with ProcessPoolExecutor(1, get_context("spawn"), _begin, (name, seed)) as second:
        coming, number = second.submit(_make, 0, target), 0
        while (done := (time.time() - began) / (60 * minutes)) < 1:
            batches, number = coming.result(), number + 1
            coming, losses = second.submit(_make, number, target), []
            for rows in batches:
                done = min((time.time() - began) / (60 * minutes), 1.0)
                fall = 1 if done < FALL else max(0.02, (1 - done) / (1 - FALL))
                for group in optimiser.param_groups:
                    group["lr"] = RATE * min(1, (steps + 1) / WARM_UP) * fall
                with torch.autocast("cpu", torch.bfloat16):
                    loss = loss_of(model, rows, tokenizer.pad_token_id, numbers, body)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()
                optimiser.zero_grad()
                losses.append(loss.item())
                steps, seen = steps + 1, seen + sum(len(r.prompt) + len(r.reply) for r in rows)
            save(model, target)
            told = {"pools": number, "steps": steps, "tokens": seen, "done": round(done, 3)}
            told["loss"] = round(float(np.mean(losses)), 4)
            print(json.dumps(told), flush=True)
        coming.cancel()
    save(model, target)
    sat: list[dict[str, Any]] = []
    if source and (source / SITTINGS).is_file():
        sat = json.loads((source / SITTINGS).read_text(encoding="utf-8"))
    new = {"name": name, "minutes": minutes, "seed": seed, "mixture": MIXTURES[name]} | told
    sat.append(new if source else new | {"scratch": True})
    (target / SITTINGS).write_text(json.dumps(sat, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=list(MIXTURES))
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--to", type=Path, required=True, help="the model's folder")
    start = parser.add_mutually_exclusive_group()
    source = DATA / "models" / "embedded"
    start.add_argument("--source", type=Path, default=source, help="the model to go on from")
    start.add_argument("--scratch", action="store_true", help="begin with random weights")
    parser.add_argument("--seed", type=int, default=1, help="another one for each sitting")
    parser.add_argument("--evaluate", type=int, help="generated patients to tell it by, at the end")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.minutes:
        sit(args.name, args.minutes, args.to, None if args.scratch else args.source, args.seed)
    if args.evaluate:
        found = evaluated(args.name, tl.open_model(f"hf:{args.to}"), args.evaluate)
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
