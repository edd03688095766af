"""Bounds from the most probable tokens alone, against whole distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trustlab.models.local.decoding import bounds
from trustlab.models.local.logits import statistics_of

ALPHAS = st.sampled_from([0.1, 0.5, 0.999, 1.0, 1.5, 2.0, 7.0])


def whole(p: np.ndarray, alpha: float) -> np.ndarray:
    """Entropy, Rényi divergence and Fisher-Rao distance by the backend that sees all of it."""
    with np.errstate(divide="ignore"):
        return statistics_of(np.log(p)[None], alpha)[:3, 0]


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1), st.integers(2, 60), st.floats(0.02, 8), ALPHAS, st.integers(1, 60),
    st.booleans(),
)  # fmt: skip
def test_the_truth_lies_on_the_stated_side_of_every_bound(seed, n_tokens, spread, alpha, m, capped):
    logits = np.random.default_rng(seed).normal(scale=spread, size=n_tokens)
    logprobs = np.sort(logits - np.log(np.exp(logits).sum()))[::-1]
    top = logprobs[: min(m, n_tokens)]
    cap = float(top[-1]) if capped else None
    found = bounds(top.tolist(), cap, alpha=alpha, vocabulary_size=n_tokens)
    assert found is not None and found[1] is not None and found[2] is not None
    entropy, renyi, fisher_rao = whole(np.exp(logprobs), alpha)
    # A rest below one in a million is taken for rounding.
    assert found[0] <= entropy + 1e-9
    assert found[1] >= renyi - 1e-4 and found[2] >= fisher_rao - 1e-4


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_the_bounds_are_attained_by_the_packed_distribution(alpha):
    """0.4 and 0.2 are known, so hidden tokens have at most 0.2; the rest of 0.4 in as few as that
    allows is twice 0.2."""
    known, left = np.log([0.4, 0.2]).tolist(), np.array([0.4, 0.2, 0.2, 0.2])
    for n in (4, 5):
        found = bounds(known, math.log(0.2), alpha=alpha, vocabulary_size=n)
        assert found == pytest.approx(whole(np.append(left, [0.0] * (n - 4)), alpha), abs=1e-9)


def test_bounds_by_hand():
    half, tenth = math.log(0.5), math.log(0.1)
    assert bounds([half], None, alpha=0.5) == (pytest.approx(math.log(2)), None, None)
    too_small = bounds([tenth], tenth, alpha=0.5, vocabulary_size=4)  # ten tokens are needed
    assert too_small == (pytest.approx(math.log(10)), None, None)
    for none in ([], [math.log(0.8), math.log(0.4)]):  # more than one in all
        assert bounds(none, -1.0, alpha=0.5, vocabulary_size=10) is None
