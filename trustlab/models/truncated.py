"""What the most probable tokens alone still say about a next-token distribution: bounds, no guesses.

A service lists the m most probable tokens at a position and hides the rest. Let p_1 >= ... >= p_m be listed and
r = 1 - sum p the rest. Each hidden token has at most p_m, or it would be listed. Of all distributions that fit, the one
that packs r into as few hidden tokens as that cap allows, floor(r / p_m) tokens of p_m and one of what is left,
majorises all others. Entropy is Schur-concave; the Rényi divergence from the uniform distribution over N tokens,
log N - H_a with H_a Schur-concave for every order a > 0, and the Fisher-Rao distance from it, an arccos that falls
with the Schur-concave sum of square roots, are Schur-convex. So at that packing the entropy is at its smallest and
both distances at their largest: a lower bound and two upper bounds, and each is attained. The distances need N.
(Marshall, Olkin and Arnold, Inequalities: Theory of Majorization, 2011, chapters 3 and 13.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp

ROUNDING = 1e-6
"""A rest below it is what servers lose by rounding, not hidden tokens."""
EXCESS = 1e-3
"""Probabilities that sum to more than 1 + this are no distribution at temperature 1."""

BOUNDS = {"entropies": "lower", "renyi": "upper", "fisher_rao": "upper"}
"""Which side of the truth each statistic of :func:`bounds` lies on."""


def bounds(
    logprobs: Sequence[float], cap: float | None, *, alpha: float, vocabulary_size: int | None = None
) -> tuple[float, float | None, float | None] | None:
    """(entropy at least, Rényi divergence of order ``alpha`` at most, Fisher-Rao distance at most), in nats, nats, [0, 1].

    ``logprobs`` (m,): natural log-probabilities of distinct known tokens. ``cap``: the log-probability that no hidden token
    exceeds; ``None`` where nothing is known of it, and the rest may be one token. Both distances are ``None`` without
    ``vocabulary_size`` or where the known tokens do not fit one of that size. ``None`` where there is no known token or their
    probabilities sum to more than 1.
    """
    known = np.asarray(logprobs, dtype=np.float64)
    rest = 1.0 - float(np.exp(known).sum())
    if not len(known) or rest < -EXCESS:
        return None
    values, counts = known, np.ones(len(known))
    if rest > ROUNDING:
        hidden, times = _packed(rest, 1.0 if cap is None else math.exp(cap))
        values, counts = np.append(known, hidden), np.append(counts, times)
    entropy = max(0.0, float(-(counts * np.exp(values) * values).sum()))
    if vocabulary_size is None or counts.sum() > vocabulary_size:
        return entropy, None, None
    log_n = math.log(vocabulary_size)
    renyi = log_n - entropy
    if alpha != 1:
        power: Any = logsumexp(alpha * values, b=counts)
        renyi = (float(power) - (1 - alpha) * log_n) / (alpha - 1)
    overlap = float((counts * np.exp(values / 2)).sum()) / math.sqrt(vocabulary_size)
    return entropy, max(0.0, renyi), 2 / math.pi * math.acos(min(1.0, overlap))


def _packed(rest: float, cap: float) -> tuple[list[float], list[float]]:
    """Log-probabilities of the packed hidden tokens, and how many have each."""
    if cap <= 0:
        return [], []
    n_full = math.floor(rest / cap)
    left = rest - n_full * cap
    found = [(math.log(p), n) for p, n in ((cap, float(n_full)), (left, 1.0)) if n and p > 1e-300]
    return [value for value, _ in found], [n for _, n in found]
