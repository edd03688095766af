"""Cohen's kappa on tables small enough to count by hand."""

from __future__ import annotations

import numpy as np
import pytest

from trustlab.metrics.agreement import agreement, cohen_kappa, cohen_kappa_weighted
from trustlab.metrics.estimate import case_weights, percentile_interval

# 20 both right, 5 only the first, 10 only the second, 15 both wrong: 0.7 agree, 0.5 by chance
FIRST = np.repeat([1, 1, 0, 0], [20, 5, 10, 15])
SECOND = np.repeat([1, 0, 1, 0], [20, 5, 10, 15])
CASES = np.arange(50) // 5


def test_kappa_is_the_agreement_beyond_chance() -> None:
    assert cohen_kappa(FIRST, SECOND) == pytest.approx(0.4)  # (0.7 - 0.5) / (1 - 0.5)


@pytest.mark.parametrize(("first", "second", "kappa"), [([1, 0, 1], [1, 0, 1], 1), ([1, 0], [0, 1], -1), ([1, 1], [1, 0], 0)])
def test_kappa_at_its_ends_and_where_one_grader_says_the_same_of_all(first, second, kappa) -> None:
    assert cohen_kappa(first, second) == pytest.approx(kappa)


@pytest.mark.parametrize(("first", "second"), [([1, 1], [1, 1]), ([0, 0], [0, 0]), ([1, 1], [0, 0]), ([], [])])
def test_kappa_is_missing_where_both_are_constant(first, second) -> None:
    assert np.isnan(cohen_kappa(first, second))


def test_the_counts_say_where_two_graders_part() -> None:
    found = agreement(FIRST, SECOND, CASES, n_draws=200)
    counts = [found[k] for k in ("n", "both_right", "only_first", "only_second", "both_wrong", "agreement")]
    assert counts == [50, 20, 5, 10, 15, 0.7]
    assert found["low"] < found["kappa"] < found["high"] and found["missing"] == ""


def test_the_interval_resamples_cases() -> None:
    found = agreement(FIRST, SECOND, CASES, n_draws=300, seed=3)
    draws = []
    for weights in case_weights(CASES, 300, 3):
        rows = np.repeat(np.arange(50), weights)
        draws.append(cohen_kappa(FIRST[rows], SECOND[rows]))
    assert (found["low"], found["high"]) == pytest.approx(percentile_interval(draws))


def test_a_weight_counts_an_answer_that_often() -> None:
    weights = np.array([np.ones(50), np.zeros(50), (FIRST == SECOND).astype(float)])
    assert cohen_kappa_weighted(FIRST, SECOND, weights) == pytest.approx([0.4, np.nan, 1], nan_ok=True)


def test_an_undefined_kappa_says_why_and_keeps_its_counts() -> None:
    found = agreement([1, 1, 1], [1, 1, 1], ["a", "a", "b"])
    assert np.isnan([found["kappa"], found["low"]]).all() and found["agreement"] == 1 and found["n"] == 3
    assert found["missing"] == "kappa is undefined: each grader says the same of all answers"


def test_nothing_that_both_graded_is_no_agreement() -> None:
    found = agreement([], [], [])
    assert found["n"] == 0 and np.isnan(found["agreement"]) and found["missing"] == "no answer that both graded"


@pytest.mark.parametrize(("first", "second"), [([1, 0], [1]), ([1, 2], [1, 0]), ([1, np.nan], [1, 0]), ([[1]], [[1]])])
def test_grades_are_0_or_1_and_paired(first, second) -> None:
    with pytest.raises(ValueError, match="0 or 1|shape"):
        cohen_kappa(first, second)
