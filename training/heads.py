"""Attention heads that can look things up before anything is learned.

Copying a word that stands after the same word further up ("induction"), or finding the sentence
that speaks of a criterion, is a circuit of two layers that a small model finds late: until both
halves are there, neither is of use. So the halves are written into the random weights at the start;
training then does with them what it likes. The idea of a start that mimics what trained
transformers look like is from Trockman & Kolter, "Mimetic initialization of self-attention layers"
(2023); the circuit from Olsson et al., "In-context learning and induction heads" (2022).

Layer 0, head 0 looks one token back and writes what it finds there into a part of its own of the
residual stream. Layer 1, heads 0 and 1 look for a place whose token before is the present token,
and copy what stands there. Layer 1, heads 2 and 3 look for a place, first of all among the
patient's own words, that means the same as the token before, or as the present token, and copy it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

CONSTANT = 0.5
"""Length of a component that all embeddings share, by their length: what a head that asks for a
place only can ask with."""
BACK, SAME, ALIKE, HIS_OWN = 40.0, 2.5, 1.5, 22.0
"""How sharply: one token back, the same token, one that means the same, the patient's own words."""
NOTHING = 1.2
"""How strongly the beginning of the text, where nothing is said, draws the heads that find no match
among the patient's words."""
NOTED, COPIED = 0.06, 0.3
"""How strongly a head writes what it found."""
SIGNS, SENSES = 24, 32
"""Dimensions of what tells tokens apart and of what they mean, as the token before is noted."""
FAST, FAR = 8, 500
"""Rotary pairs that tell neighbours apart; a distance in tokens at which a pair used for looking up
must hardly have turned."""


def write_heads(model: Any, patient: int, seed: int) -> None:
    """Write the heads into a fresh ``LlamaForCausalLM``, in place; ``patient`` is the token before
    what a patient says.

    The embeddings are taken as they are, brought to one length, and their last dimension becomes
    the shared component. Their first dimensions are taken for the leading ones of what tokens mean
    (:func:`training.begin.meanings`).
    """
    config, table = model.config, model.get_input_embeddings().weight
    hidden, heads = config.hidden_size, config.num_attention_heads
    size = hidden // heads
    signs, senses = min(SIGNS, size // 2), min(SENSES, size // 2)
    turn = model.model.rotary_emb.inv_freq.double().numpy()
    slow = [i for i in range(size // 2) if turn[i] * FAR < 1]
    slow = [*slow, *(i + size // 2 for i in slow)]
    rng, last = np.random.default_rng([seed, 1]), hidden - 1
    with torch.no_grad():
        length = table.norm(dim=1).median()
        table[:, last] = 0
        table *= length / table.norm(dim=1, keepdim=True).clamp(min=1e-6)
        table[:, last] = CONSTANT * length
        table[config.pad_token_id] = 0
        shared = float(
            CONSTANT * (hidden / (1 + CONSTANT**2)) ** 0.5
        )  # that component after the norm
        first, second = (model.model.layers[i].self_attn for i in (0, 1))
        calm(model, last, senses)
        alike = torch.eye(hidden)[:senses]
        same = directions(signs, hidden, rng, alike)
        read = torch.cat([same, alike])
        noted = directions(len(read), hidden, rng, read)
        query, key = torch.zeros(size, hidden), torch.zeros(size, hidden)
        for i in range(min(FAST, size // 2)):
            key[i, last] = 1
            query[i, last], query[i + size // 2, last] = np.cos(turn[i]), -np.sin(turn[i])
        sharp = BACK**0.5 / shared
        fill(first, 0, sharp * query, sharp * key, read, NOTED * noted)
        marked = read @ (table[patient] / table[patient].square().mean().sqrt())
        marked = (marked / marked.norm()) @ noted
        nowhere = table[config.bos_token_id].clone()
        nowhere[last] = 0
        nowhere /= nowhere.norm()
        for head in range(min(4, heads)):
            query, key = torch.zeros(size, hidden), torch.zeros(size, hidden)
            if head < 2:
                at = slow[:signs]
                query[at], key[at] = SAME * same[: len(at)], SAME * noted[:signs][: len(at)]
            else:
                at = slow[: senses - 1]
                asked = noted[signs:] if head == 2 else alike
                query[at], key[at] = ALIKE * asked[: len(at)], ALIKE * alike[: len(at)]
                own = slow[senses - 1 : senses]
                query[own, last], key[own] = HIS_OWN / shared, marked + NOTHING * nowhere
            found = directions(size, hidden, rng)
            fill(second, head, query, key, found, COPIED * found)


def calm(model: Any, shared: int, senses: int) -> None:
    """Let the random weights take no notice of the shared component, and write less the more layers
    there are (as in GPT-2).

    The first layer's leave the dimensions of what tokens mean alone.
    """
    for layer in model.model.layers:
        attention, mixing = layer.self_attn, layer.mlp
        for part in (
            attention.q_proj,
            attention.k_proj,
            attention.v_proj,
            mixing.gate_proj,
            mixing.up_proj,
        ):
            part.weight[:, shared] = 0
        for part in (attention.o_proj, mixing.down_proj):
            part.weight *= (2 * len(model.model.layers)) ** -0.5
    for part in (model.model.layers[0].self_attn.o_proj, model.model.layers[0].mlp.down_proj):
        part.weight[:senses] = 0


def fill(
    attention: Any,
    head: int,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
) -> None:
    """Set one head: rows of queries, keys and values, and where each value is written, all of shape
    (size, hidden).

    Fewer rows of values leave the rest as they are.
    """
    size = len(query)
    rows, some = slice(head * size, (head + 1) * size), slice(head * size, head * size + len(value))
    for part, weight, at in (("q", query, rows), ("k", key, rows), ("v", value, some)):
        getattr(attention, f"{part}_proj").weight[at] = weight
    attention.o_proj.weight[:, some] = out.T


def directions(
    n: int, hidden: int, rng: np.random.Generator, others: torch.Tensor | None = None
) -> torch.Tensor:
    """``n`` random directions at right angles to each other, to the shared component and to
    ``others``, shape (n, hidden)."""
    drawn = rng.normal(size=(n, hidden))
    drawn[:, -1] = 0
    if others is not None:
        basis = np.linalg.qr(others.numpy().T)[0]
        drawn -= drawn @ basis @ basis.T
    return torch.tensor(np.linalg.qr(drawn.T)[0].T, dtype=torch.float32)
