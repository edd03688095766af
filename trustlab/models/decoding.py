"""How replies are decoded, without a model: random draws, token statistics, batches, and replies while they grow.

Nothing here needs torch; all arithmetic is float64.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from trustlab.models.base import STATISTICS, Messages, Request

Ids = tuple[int, ...]


def uniforms(messages: Messages, seed: int, index: int, n: int) -> np.ndarray:
    """``n`` uniforms in [0, 1) for reply ``index``: a function of seed, index and messages, and of nothing else."""
    key = hashlib.sha256(json.dumps([seed, index, messages]).encode()).digest()[:16]
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little"))).random(n)


def inverse_cdf(cumulative: np.ndarray, row: np.ndarray, u: np.ndarray) -> np.ndarray:
    """First column of ``cumulative[row[i]]`` above ``u[i]`` times that row's last value, for (n, N), (A,) and (A,)."""
    target = u * cumulative[row, -1]
    low, high = np.zeros_like(row), np.full_like(row, cumulative.shape[1] - 1)
    while (low < high).any():
        middle = (low + high) // 2
        above = cumulative[row, middle] > target
        low, high = np.where(above, low, np.minimum(middle + 1, high)), np.where(above, middle, high)
    return low


def shift(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Float64 logits less their row's maximum (n, N), and the log of their exponentials' sum (n,)."""
    shifted = logits.astype(np.float64)
    top = shifted.max(axis=1, keepdims=True)
    if not np.isfinite(top).all():
        raise ValueError('the model gave logits that are not finite; try dtype="float32"')
    shifted -= top
    return shifted, np.log(np.exp(shifted).sum(axis=1))


def distribution_statistics(shifted: np.ndarray, log_total: np.ndarray, alpha: float) -> np.ndarray:
    """Entropy (nats), Rényi divergence from uniform (nats), Fisher-Rao distance [0, 1) of each row, (3, n).

    Takes what :func:`shift` gives. With q = 1/N: H = -sum P log P; 1/(a-1) log sum P^a q^(1-a), its limit log N - H at
    a = 1; (2/pi) arccos min(1, sum sqrt(P q)).
    """
    n_tokens = shifted.shape[1]
    # A logit of -inf has probability 0 and adds nothing; the floor keeps 0 x inf out of the sum.
    logprobs = np.maximum(shifted, -1e4) - log_total[:, None]
    roots = np.exp(logprobs / 2)
    entropy = -(roots * roots * logprobs).sum(axis=1)
    fisher_rao = 2 / math.pi * np.arccos(np.minimum(1.0, roots.sum(axis=1) / math.sqrt(n_tokens)))
    if alpha == 1:
        return np.stack([entropy, math.log(n_tokens) - entropy, fisher_rao])
    power = roots if alpha == 0.5 else np.exp(alpha * logprobs)
    renyi = (np.log(power.sum(axis=1)) - (1 - alpha) * math.log(n_tokens)) / (alpha - 1)
    return np.stack([entropy, renyi, fisher_rao])


def text_pieces(ids: Ids, decode: Callable[[Ids], str]) -> list[str]:
    """The text that each token adds; joined they are ``decode(ids)``. A token that completes no character adds ''."""
    text = decode(ids)
    ends = [0]
    for k in range(1, len(ids)):
        begun = decode(ids[:k])
        agreed = begun if text.startswith(begun) else os.path.commonprefix([begun, text])
        ends.append(max(ends[-1], len(agreed)))
    ends.append(len(text))
    return [text[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)] if ids else []


def piece_after(before: Ids, token: int, decode: Callable[[Ids], str]) -> str:
    """The text that ``token`` adds behind the tokens ``before``."""
    begun, text = decode(before), decode((*before, token))
    return text.removeprefix(begun) if text.startswith(begun) else text[len(os.path.commonprefix([begun, text])) :]


def batches(
    lengths: Sequence[int], extra: Sequence[int], rows: Sequence[int], limit: int, *, equal: bool = False
) -> Iterator[list[int]]:
    """Indices by rising length, cut where all rows x (longest length + largest extra) would pass ``limit``; never empty.

    With ``equal`` they are cut where the length changes, too.
    """
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda j: lengths[j]):
        more = [*batch, i]
        full = sum(rows[j] for j in more) * (lengths[i] + max(extra[j] for j in more)) > limit
        if batch and (full or (equal and lengths[i] > lengths[batch[0]])):
            yield batch
            more = [i]
        batch = more
    if batch:
        yield batch


def left_padded(rows: Sequence[Ids]) -> tuple[np.ndarray, np.ndarray]:
    """Token ids (n, width), zeros on the left where a row is shorter, and how many of them each row has (n,)."""
    lengths = [len(row) for row in rows]
    ids = np.zeros((len(rows), max(lengths)), dtype=np.int64)
    for i, row in enumerate(rows):
        ids[i, -len(row) :] = row
    return ids, max(lengths) - np.array(lengths)


def check(request: Request) -> None:
    """ValueError for a request that cannot be answered."""
    if request.n < 1 or request.max_tokens < 1:
        raise ValueError(f"n and max_tokens must be at least 1, got n={request.n}, max_tokens={request.max_tokens}")
    if request.first < 0 or request.n_alternatives < 1 or not 0 < request.renyi_alpha < math.inf:
        options = f"{request.first}, {request.n_alternatives}, {request.renyi_alpha}"
        raise ValueError(f"first must be at least 0, n_alternatives at least 1 and renyi_alpha above 0, got {options}")
    if not 0 <= request.temperature < math.inf:
        raise ValueError(f"temperature must be finite and at least 0, got {request.temperature}")
    if unknown := request.want - set(STATISTICS):
        raise ValueError(f"want must be among {STATISTICS}, got {sorted(unknown)}")
    if "prior" in request.want and request.prior_messages is None:
        raise ValueError("prior is wanted but prior_messages is None; give the messages without patient information")


@dataclass
class GrowingReplies:
    """The R replies of one batch, up to T tokens each, filled in while they grow."""

    requests: list[Request]
    prompt: np.ndarray  # (R,) which prompt of the batch
    temperature: np.ndarray  # (R,)
    limit: np.ndarray  # (R,) tokens allowed
    distributions: np.ndarray  # (R,) bool: wanted
    alpha: np.ndarray  # (R,) order of the Rényi divergence
    n_alternatives: int  # the most that any of them lists
    uniform: np.ndarray  # (R, T)
    tokens: np.ndarray  # (R, T)
    node: np.ndarray  # (R, T) which node of step t the reply stood at
    statistics: np.ndarray  # (4, R, T): logprobs, entropies, renyi, fisher_rao
    length: np.ndarray  # (R,) without the final end token
    stopped: np.ndarray  # (R,) bool: an end token came
    best: list[dict[int, tuple[tuple[int, float], ...]]] = field(default_factory=list)  # per step: alternatives by node

    @classmethod
    def start(cls, owners: list[tuple[int, Request, int]], room: list[float]) -> GrowingReplies:
        """Nothing said yet, for (prompt, request, reply index) triples; ``room``: tokens that fit after each prompt."""
        requests = [request for _, request, _ in owners]
        limit = np.array([min(request.max_tokens, room[row]) for row, request, _ in owners], dtype=np.int64)
        shape = (len(owners), int(limit.max()))
        uniform = np.zeros(shape)
        for r, (_, request, k) in enumerate(owners):
            if request.temperature > 0:
                uniform[r] = uniforms(request.messages, request.seed, request.first + k, shape[1])
        return cls(
            requests=requests, prompt=np.array([row for row, _, _ in owners]),
            temperature=np.array([float(request.temperature) for request in requests]), limit=limit,
            distributions=np.array(["distributions" in request.want for request in requests]), uniform=uniform,
            alpha=np.array([float(request.renyi_alpha) for request in requests]),
            n_alternatives=max(request.n_alternatives for request in requests),
            tokens=np.zeros(shape, dtype=np.int64), node=np.zeros(shape, dtype=np.int64),
            statistics=np.full((4, *shape), np.nan), length=limit.copy(), stopped=np.zeros(len(owners), dtype=bool),
        )  # fmt: skip

    def ids(self, r: int) -> Ids:
        """The tokens of reply ``r`` so far, without the end token."""
        return tuple(self.tokens[r, : self.length[r]].tolist())
