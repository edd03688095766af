"""Thresholds on recorded consultations: who stops when, and what each brings."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trustlab.metrics.stopping import along, best_threshold, fold_of, frontier, stop_turns

NAN = float("nan")
SURE = [[0.2, 0.9, 0.5], [0.6, 0.1, 0.7], [NAN, NAN, NAN]]
RIGHT = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]
SAID = [[2, 4, 6]] * 3


@each(
    ("threshold", "turns"),
    [(0.0, [0, 0, 2]), (0.2, [0, 0, 2]), (0.5, [1, 0, 2]), (0.7, [1, 2, 2]), (np.inf, [2, 2, 2])],
)
def test_a_case_stops_at_the_first_turn_that_reaches_the_threshold_or_at_the_last(
    threshold: float, turns: list[int]
) -> None:
    assert stop_turns(SURE, threshold).tolist() == turns


def test_the_frontier_by_hand() -> None:
    found = frontier(SURE, RIGHT, SAID, [0.5, np.inf, 0.7])
    assert found.thresholds.tolist() == [np.inf, 0.7, 0.5]
    assert found.accuracy.tolist() == pytest.approx([2 / 3, 1, 2 / 3])
    assert found.utterances.tolist() == pytest.approx([6, 16 / 3, 4])
    assert found.early.tolist() == pytest.approx([0, 1 / 3, 2 / 3])
    default = frontier(SURE, RIGHT, SAID).thresholds  # every confidence, and never
    assert default.tolist() == [np.inf, 0.9, 0.7, 0.6, 0.5, 0.2, 0.1]


@given(arrays(float, (7, 4), elements=st.floats(0, 1)), st.integers(0, 2**28 - 1))
def test_a_laxer_threshold_never_asks_more(sure: np.ndarray, bits: int) -> None:
    right = np.array([bits >> i & 1 for i in range(28)]).reshape(7, 4)
    found = frontier(sure, right, np.tile([1, 2, 3, 4], (7, 1)))
    assert (np.diff(found.utterances) <= 0).all() and (np.diff(found.early) >= 0).all()
    assert found.accuracy[0] == right[:, -1].mean() and found.utterances[0] == 4


def test_each_case_has_its_value_where_it_stops() -> None:
    assert along(SAID, [0, 2, 1]).tolist() == [2, 6, 4]
    assert along(SAID, [[0, 0, 0], [2, 1, 0]]).tolist() == [[2, 2, 2], [6, 4, 2]]


@each(
    ("price", "threshold"),
    # accuracy and utterances: never 2/3 and 6; 0.9 and 0.7 1 and 16/3; 0.6 and 0.5 2/3 and 4; 0.2
    # and 0.1 1/3 and 10/3
    [(0, 0.7), (0.2, 0.7), (0.4, 0.5), (1, 0.1)],
)
def test_the_best_threshold_weighs_accuracy_against_utterances(
    price: float, threshold: float
) -> None:
    assert best_threshold(SURE, RIGHT, SAID, price) == threshold


def test_the_best_threshold_is_lowest_if_asking_brings_nothing_and_highest_if_misled() -> None:
    assert best_threshold([[0.3, 0.9]] * 4, [[1, 1]] * 4, [[2, 4]] * 4, 0) == 0.3
    assert best_threshold([[0.3, 0.9]] * 4, [[0, 1]] * 4, [[2, 4]] * 4, 0.01) == 0.9
    assert best_threshold([[0.9, 0.3]] * 4, [[0, 1]] * 4, [[2, 4]] * 4, 0.01) == inf


def test_folds_are_even_and_do_not_hang_on_the_order_of_cases() -> None:
    ids = [f"case-{i}" for i in range(11)]
    folds = fold_of(ids, 3, 1)
    assert sorted(np.bincount(folds)) == [3, 4, 4]
    assert fold_of(ids[::-1], 3, 1).tolist() == folds[::-1].tolist()
    assert fold_of(ids, 3, 2).tolist() != folds.tolist()
