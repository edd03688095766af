"""Bounds from the most probable tokens alone, against whole distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trustlab.models.decoding import bounds
from trustlab.models.logits import statistics_of

ALPHAS = st.sampled_from([0.1, 0.5, 0.999, 1.0, 1.5, 2.0, 7.0])


def whole(p: np.ndarray, alpha: float) -> np.ndarray:
    """Entropy, Rényi divergence and Fisher-Rao distance of a whole distribution, by the backend
    that sees all of it."""
    with np.errstate(divide="ignore"):
        return statistics_of(np.log(p)[None], alpha)[:, 0]


@settings(deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 60),
    st.floats(0.02, 8),
    ALPHAS,
    st.integers(1, 60),
    st.booleans(),
)
def test_the_truth_lies_on_the_stated_side_of_every_bound(seed, n_tokens, spread, alpha, m, capped):
    logits = np.random.default_rng(seed).normal(scale=spread, size=n_tokens)
    logprobs = np.sort(logits - np.log(np.exp(logits).sum()))[::-1]
    top = logprobs[: min(m, n_tokens)]
    found = bounds(
        top.tolist(), float(top[-1]) if capped else None, alpha=alpha, vocabulary_size=n_tokens
    )
    assert found is not None
    entropy, renyi, fisher_rao = whole(np.exp(logprobs), alpha)
    assert found[0] <= entropy + 1e-9
    # A rest below one in a million is taken for rounding.
    assert found[1] is not None and found[1] >= renyi - 1e-4
    assert found[2] is not None and found[2] >= fisher_rao - 1e-4


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_the_bounds_are_attained_by_the_packed_distribution(alpha):
    packed = np.array(
        [0.4, 0.2, 0.2, 0.15, 0.05]
    )  # known: 0.4 and 0.2, so hidden tokens have at most 0.2
    known = np.log(packed[:2]).tolist()
    left = np.array(
        [0.4, 0.2, 0.2, 0.2]
    )  # the rest of 0.4 in as few tokens as that allows: twice 0.2
    found = bounds(known, math.log(0.2), alpha=alpha, vocabulary_size=4)
    assert found == pytest.approx(whole(left, alpha), abs=1e-9)
    found = bounds(known, math.log(0.2), alpha=alpha, vocabulary_size=5)
    assert found == pytest.approx(whole(np.append(left, 0.0), alpha), abs=1e-9)
    assert found is not None and found[0] < whole(packed, alpha)[0]


def test_without_a_cap_the_rest_may_be_one_token():
    found = bounds([math.log(0.5)], None, alpha=0.5)
    assert found == (pytest.approx(math.log(2)), None, None)
    assert bounds([math.log(0.25)], math.log(0.25), alpha=0.5) == (
        pytest.approx(math.log(4)),
        None,
        None,
    )


def test_a_whole_list_gives_the_exact_values():
    p = np.array([0.5, 0.25, 0.125, 0.125])
    found = bounds(np.log(p).tolist(), math.log(0.125), alpha=2.0, vocabulary_size=4)
    assert found == pytest.approx(whole(p, 2.0), abs=1e-12)


@pytest.mark.parametrize(
    "logprobs", [[], [math.log(0.8), math.log(0.4)]], ids=["nothing known", "more than one in all"]
)
def test_what_is_no_distribution_bounds_nothing(logprobs):
    assert bounds(logprobs, -1.0, alpha=0.5, vocabulary_size=10) is None


def test_a_vocabulary_too_small_for_the_rest_gives_no_distance():
    assert bounds([math.log(0.1)], math.log(0.1), alpha=0.5, vocabulary_size=4) == (
        pytest.approx(math.log(10)),
        None,
        None,
    )
