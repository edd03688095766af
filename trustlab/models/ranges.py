"""Says which values a token's statistics may have, from a server, a table or a cache."""

from __future__ import annotations

import math
from collections.abc import Iterable

SENTINEL = -9998.0
"""Servers write -9999 for a log-probability that they do not tell; none is this low."""
ROUNDING = 1e-6
"""What is outside its range by less is rounding."""
EXCESS = 1e-3
"""Probabilities that sum to more than 1 + this are no distribution at temperature 1."""
MOST_NATS = math.log(1 << 24)
"""The entropy, or divergence from uniform, of the largest vocabulary that there may be."""


def is_untold(logprob: float | None) -> bool:
    """Whether a server gives no log-probability: nothing, -9999, minus infinity."""
    return logprob is None or logprob <= SENTINEL


def are_alternatives(listed: Iterable[tuple[str, float]]) -> bool:
    """Whether (token, log-probability) can be different tokens of one place: their probabilities
    sum to at most 1."""
    return sum(math.exp(logprob) for _, logprob in listed) <= 1 + EXCESS
