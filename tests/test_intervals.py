"""Intervals and p-values from what each case adds, by hand and against a direct computation."""

from __future__ import annotations

import numpy as np
import pytest
from each import each
from scipy.stats import t as student

from trustlab.metrics.intervals import (
    agresti_coull,
    effective_n,
    jackknife_error,
    kish_n,
    opposed_p,
    with_extremes,
)


@each(
    ("hits", "counts", "n"),
    [
        ([1] * 12 + [0] * 12, [1] * 24, 24),  # one answer a case
        ([6] * 12 + [0] * 12, [6] * 24, 23),  # alike: as many as cases, less one
        ([3] * 24, [6] * 24, 144),  # no more than there are answers
        ([6] * 15 + [3] * 9, [6] * 24, 24),  # nine cases with a wrong answer: as many as cases
        ([5] * 12 + [6] * 12, [6] * 24, 24),  # a slip in each of twelve fills two cases
        ([0] * 24, [6] * 24, 24),
        ([0] * 20, [1, 3] * 10, 16),  # 40² / 100
    ],
)
def test_answers_that_go_together_are_worth_fewer(
    hits: list[int], counts: list[int], n: float
) -> None:
    assert effective_n(np.array(hits), np.array(counts)) == pytest.approx(n)


def test_the_design_effect_is_the_variance_between_cases_by_that_of_so_many_answers() -> None:
    rng = np.random.default_rng(0)
    hits = rng.binomial(6, rng.beta(2, 2, 40))
    share = hits.sum() / 240
    effect = (np.var(hits / 6, ddof=1) / 40) / (share * (1 - share) / 240)
    assert effect > 1 and effective_n(hits, np.full(40, 6)) == pytest.approx(240 / effect)
    assert kish_n(np.array([1, 2, 5])) == pytest.approx(64 / 30)


def test_agresti_coull_by_hand_and_within_0_and_1() -> None:
    q = student.ppf(0.975, 23)
    middle = (18 + q**2 / 2) / (24 + q**2)
    reach = q * np.sqrt(middle * (1 - middle) / (24 + q**2))
    assert agresti_coull(0.75, 24, 24) == pytest.approx((middle - reach, middle + reach))
    low, high = agresti_coull(1.0, 24, 24)
    assert high == 1 and 0.8 < low < 0.9
    assert agresti_coull(0.0, 24, 24) == pytest.approx((1 - high, 1 - low))  # its mirror image


def with_cases_added(values: np.ndarray, ends: list[float]) -> tuple[float, float]:
    """Mean and standard error of values (n,) with more values, done plainly."""
    every = np.append(values, ends)
    return every.mean(), every.std(ddof=1) / np.sqrt(len(every))


@each("seed", range(4))
def test_extreme_cases_are_added_as_if_they_had_been_seen(seed: int) -> None:
    """Of a mean, whose jackknife is known: n values with the two ends among them."""
    values = np.random.default_rng(seed).beta(5, 1, 15)
    leaves = [np.delete(values, i).mean() for i in range(15)]
    error = jackknife_error(leaves)
    assert error == pytest.approx(values.std(ddof=1) / np.sqrt(15))
    middle, spread = with_cases_added(values, [0, 1])
    reach = student.ppf(0.975, 16) * spread
    expected = max(middle - reach, 0), min(middle + reach, 1)
    assert with_extremes(values.mean(), error, 15, (0, 1)) == pytest.approx(expected)
    gaps = values - 0.6
    middle, spread = with_cases_added(gaps, [-1])
    p = 2 * student.sf(middle / spread, 15) if middle > 0 else 1
    assert opposed_p(gaps.mean(), error, 15) == pytest.approx(p)
    assert opposed_p(-gaps.mean(), error, 15) == pytest.approx(p)


def test_a_statistic_that_no_case_changes_still_has_an_interval_and_no_small_p() -> None:
    low, high = with_extremes(1.0, 0.0, 10, (0, 1))
    assert high == 1 and 0.5 < low < 0.95
    assert opposed_p(0.05, 0.0, 10) == 1  # one case against it turns it round
    assert opposed_p(0.0, 0.01, 100) == 1
    assert opposed_p(0.05, 0.05, 50) > opposed_p(0.2, 0.05, 50) > opposed_p(0.5, 0.05, 50)
