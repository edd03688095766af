"""Correlations, their p-values and what chance gives: by scipy, by hand, by every order."""

from itertools import permutations

import numpy as np
import pytest
from each import each
from scipy import stats

from trustlab.metrics.correlation import (
    pearson,
    pearson_permutation_p,
    rising_band,
    rising_null,
    spearman,
    spearman_exact_p,
    spearman_permutation_p,
    unordered_band,
)


@each("decimals", [0, 6])
def test_correlations_agree_with_scipy(decimals):
    x, y = np.round(3 * np.random.default_rng(3).random((2, 12)), decimals)
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y)[0], abs=1e-12)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y)[0], abs=1e-12)


def test_spearman_of_six_points_by_hand():
    # One neighbouring pair swapped: sum of d² is 2, rho = 1 - 6·2/(6·35) = 33/35. At least as
    # extreme: the identity and its 5 neighbouring swaps, and their 6 mirror images: 12 of 720.
    accuracy, confidence = [0.1, 0.4, 0.6, 0.7, 0.8, 0.9], [0.2, 0.3, 0.5, 0.6, 0.9, 0.8]
    assert spearman(accuracy, confidence) == pytest.approx(33 / 35)
    assert spearman_permutation_p(accuracy, confidence) == pytest.approx(12 / 720)
    assert spearman_permutation_p(accuracy, accuracy[::-1]) == pytest.approx(2 / 720)


@each("n", [4, 6])
@each(
    ("of", "ours"),
    [(stats.pearsonr, pearson_permutation_p), (stats.spearmanr, spearman_permutation_p)],
)
def test_a_permutation_p_counts_every_pairing(n, of, ours):
    x, y = np.random.default_rng(n).random((2, n))
    every = np.array([abs(of(x, np.array(order))[0]) for order in permutations(y)])
    assert ours(x, y) == pytest.approx(np.mean(every >= abs(of(x, y)[0]) - 1e-12))
    assert ours(x, -y) == ours(x, y) == ours(x, 1e6 + 0.01 * y)


def test_permutation_p_with_ties_by_hand():
    # x has two equal values: of the 6 orders of y, the pair {1, 2}, {1, 3} or {2, 3} falls on the
    # tie, twice each. rho is largest in size for 3 alone above (or 1 alone below) the tie: 4 of 6.
    assert spearman_permutation_p([1, 1, 2], [1, 2, 3]) == pytest.approx(4 / 6)


def test_exact_p_of_a_printed_rho_by_hand():
    # Of 720 orders of six points, 12 have |rho| >= 33/35 = 0.942857, printed 0.943; 24 have at
    # least 31/35 = 0.885714.
    assert spearman_exact_p(0.943, 6) == pytest.approx(12 / 720)


# What chance gives

STEEP, EVEN = (16, 64, 82, 90, 95, 96), (10, 20, 30, 40, 50, 60)


def test_the_band_is_that_of_the_run_s_own_accuracies():
    # Of a million draws; the steep curve is DDXPlus-like.
    assert rising_band(STEEP) == pytest.approx((0.616, 0.844, 0.986), abs=0.004)
    assert rising_band(EVEN) == pytest.approx((0.856, 0.962, 0.993), abs=0.004)
    rng = np.random.default_rng(9)
    drawn = [stats.pearsonr(STEEP, rng.standard_exponential(6).cumsum())[0] for _ in range(4000)]
    assert np.median(drawn) == pytest.approx(rising_band(STEEP)[1], abs=0.01)
    first, again, other = (rising_null(STEEP, n_draws=50, seed=seed) for seed in (0, 0, 1))
    assert (first == again).all() and (first != other).any()


def test_the_critical_value_of_six_unordered_points_is_that_of_the_tables():
    # 24 of 720 orders have |rho| >= 31/35 (3.3 %), 42 at least 29/35 (5.8 %).
    low, median, high = unordered_band()
    assert high == pytest.approx(31 / 35) and (low, median) == (-high, 0)
    assert spearman_exact_p(29 / 35, 6) == pytest.approx(42 / 720)
