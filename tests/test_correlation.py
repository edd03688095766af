"""Correlations, their p-values and what chance gives: by scipy, by hand, by every order."""

from itertools import permutations

import numpy as np
import pytest
from each import each
from scipy import stats

from trustlab.metrics.bands import rising_band, unordered_band
from trustlab.metrics.correlation import (
    pearson,
    pearson_permutation_p,
    spearman,
    spearman_exact_p,
    spearman_permutation_p,
    spearman_values,
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
    assert spearman_permutation_p(range(8), range(8)) == pytest.approx(2 / 40_320)


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
    # y's 3 falls on the first or last point (|r| = 0.87) in four of six orders, else r = 0.
    assert pearson_permutation_p([1, 2, 3], [1, 1, 3]) == pytest.approx(4 / 6)
    assert pearson_permutation_p([1, 2, 3], [1, 3, 1]) == 1  # r = 0: every pairing is as far


def test_exact_p_of_a_printed_rho_by_hand():
    # Of 720 orders of six points, 12 have |rho| >= 33/35 = 0.942857, printed 0.943; 24 have at
    # least 31/35 = 0.885714.
    assert spearman_exact_p(0.943, 6) == pytest.approx(12 / 720)
    # no order reaches it but the two straight ones
    assert spearman_exact_p(0.943, 6, rounding=0) == pytest.approx(2 / 720)
    assert spearman_exact_p(1, 6) == pytest.approx(2 / 720) and spearman_exact_p(0, 6) == 1
    assert spearman_exact_p(-0.886, 6) == spearman_exact_p(0.886, 6) == pytest.approx(24 / 720)


def test_the_values_of_rho_are_those_of_every_order():
    for n in (3, 4, 5, 6):
        every = {round(stats.spearmanr(range(n), order)[0], 9) for order in permutations(range(n))}
        assert spearman_values(n) == pytest.approx(sorted(every), abs=1e-9)
    assert np.allclose(np.diff(spearman_values(6)), 2 / 35) and len(spearman_values(6)) == 36
    assert len(spearman_values(30)) == 30 * 899 // 6 + 1


STEEP, EVEN = (16, 64, 82, 90, 95, 96), (10, 20, 30, 40, 50, 60)


def test_the_band_is_that_of_the_run_s_own_accuracies():
    # Of a million draws; the steep curve is DDXPlus-like.
    assert rising_band(STEEP) == pytest.approx((0.616, 0.844, 0.986), abs=0.004)
    assert rising_band(EVEN) == pytest.approx((0.856, 0.962, 0.993), abs=0.004)
    rng = np.random.default_rng(9)
    drawn = [stats.pearsonr(STEEP, rng.standard_exponential(6).cumsum())[0] for _ in range(4000)]
    assert np.median(drawn) == pytest.approx(rising_band(STEEP)[1], abs=0.01)
    shares = np.array(STEEP) / 100  # neither unit nor start matters, but the order does
    assert rising_band(0.2 + shares / 2) == pytest.approx(rising_band(STEEP))
    assert rising_band(STEEP[::-1])[2] < 0


def test_the_critical_value_of_six_unordered_points_is_that_of_the_tables():
    # 24 of 720 orders have |rho| >= 31/35 (3.3 %), 42 at least 29/35 (5.8 %).
    low, median, high = unordered_band()
    assert high == pytest.approx(31 / 35) and (low, median) == (-high, 0)
    assert spearman_exact_p(29 / 35, 6) == pytest.approx(42 / 720)
    assert unordered_band(8)[2] == pytest.approx(0.738, abs=5e-4)
