"""Thresholds on recorded consultations: who stops when, what it brings, and a guarantee that holds in simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trustlab.metrics.stopping import GRID, frontier, guarantee, stop_turns

NAN = float("nan")
SURE = [[0.2, 0.9, 0.5], [0.6, 0.1, 0.7], [NAN, NAN, NAN]]
RIGHT = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]
SAID = [[2, 4, 6]] * 3


@pytest.mark.parametrize(
    ("threshold", "turns"), [(0.0, [0, 0, 2]), (0.2, [0, 0, 2]), (0.5, [1, 0, 2]), (0.7, [1, 2, 2]), (np.inf, [2, 2, 2])]
)
def test_a_case_stops_at_the_first_turn_that_reaches_the_threshold_or_at_the_last(threshold: float, turns: list[int]) -> None:
    assert stop_turns(SURE, threshold).tolist() == turns


def test_the_frontier_by_hand() -> None:
    found = frontier(SURE, RIGHT, SAID, [0.5, np.inf, 0.7])
    assert found.thresholds.tolist() == [np.inf, 0.7, 0.5]
    assert found.accuracy.tolist() == pytest.approx([2 / 3, 1, 2 / 3])
    assert found.utterances.tolist() == pytest.approx([6, 16 / 3, 4])
    assert found.early.tolist() == pytest.approx([0, 1 / 3, 2 / 3])


def test_by_default_every_confidence_is_a_threshold_and_so_is_never() -> None:
    assert frontier(SURE, RIGHT, SAID).thresholds.tolist() == [np.inf, 0.9, 0.7, 0.6, 0.5, 0.2, 0.1]


@given(arrays(float, (7, 4), elements=st.floats(0, 1)), st.integers(0, 2**28 - 1))
def test_a_laxer_threshold_never_asks_more(sure: np.ndarray, bits: int) -> None:
    right = np.array([bits >> i & 1 for i in range(28)]).reshape(7, 4)
    found = frontier(sure, right, np.tile([1, 2, 3, 4], (7, 1)))
    assert (np.diff(found.utterances) <= 0).all() and (np.diff(found.early) >= 0).all()
    assert found.accuracy[0] == right[:, -1].mean() and found.utterances[0] == 4


def population(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Consultations whose diagnosis is right with a chance that rises with the confidence, but stays below it."""
    sure = np.sort(rng.uniform(0, 1, (n, 5)), axis=1)
    return sure, (rng.uniform(0, 1, (n, 5)) < 0.99 * sure**0.3).astype(int)


def test_the_guarantee_holds_in_simulation() -> None:
    """At most delta of the draws may give a threshold whose true error exceeds alpha; the truth from 200,000 further cases."""
    rng = np.random.default_rng(5)
    sure, right = population(rng, 200_000)
    alpha, delta, found = 0.2, 0.1, []
    for _ in range(200):
        found.append(guarantee(*population(rng, 250), alpha, delta).threshold)
    error = {}
    for threshold in {t for t in found if t is not None}:
        at = stop_turns(sure, threshold)
        early = at < 4
        error[threshold] = 1 - right[np.arange(len(sure)), at][early].mean()
    exceeded = np.mean([t is not None and error[t] > alpha for t in found])
    assert exceeded <= delta
    assert sum(t is not None for t in found) > 100, "a rule that never gives a threshold would pass as well"


def test_a_guarantee_takes_the_laxest_threshold_that_can_be_vouched_for() -> None:
    sure = np.tile([0.5, 0.9, 1.0], (100, 1))
    always = guarantee(sure, np.ones((100, 3)), 0.1)
    assert always.threshold == min(GRID) and (always.n_early, always.n_wrong) == (100, 0)
    late = np.tile([0, 1, 1], (100, 1))
    assert guarantee(sure, late, 0.1).threshold == 0.55


@pytest.mark.parametrize(
    ("n", "right", "why"),
    [
        (20, 1, "51 cases without an error would do, at most 20 stop early"),
        (200, 0, "too many errors"),
        (0, 1, "at most 0 stop early"),
    ],
)
def test_without_a_threshold_to_vouch_for_it_says_why(n: int, right: int, why: str) -> None:
    found = guarantee(np.full((n, 2), 0.9), np.full((n, 2), right), 0.1)
    assert found.threshold is None and why in found.reason


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: stop_turns([0.1, 0.2], 0.5),
        lambda: frontier(SURE, RIGHT[:2], SAID),
        lambda: frontier(SURE, [[0.5] * 3] * 3, SAID),
        lambda: frontier(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros((0, 2))),
        lambda: guarantee(SURE, RIGHT, 0),
        lambda: guarantee(SURE, RIGHT, 0.1, thresholds=[]),
        lambda: guarantee(SURE, [[1]], 0.1),
    ],
)
def test_other_shapes_and_values_are_refused(wrong) -> None:
    with pytest.raises(ValueError, match="received|must hold"):
        wrong()
