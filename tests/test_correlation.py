"""Correlations and their p-values: by scipy, by hand, by every order of a few points."""

from itertools import permutations

import numpy as np
import pytest
from each import each
from scipy import stats

from trustlab.metrics.correlation import (
    pearson,
    pearson_permutation_p,
    spearman,
    spearman_exact_p,
    spearman_permutation_p,
    spearman_values,
)

NAN = float("nan")


# Correlation


@each("decimals", [0, 6])
def test_correlations_agree_with_scipy(decimals):
    rng = np.random.default_rng(3)
    x, y = np.round(3 * rng.random((2, 12)), decimals)
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y)[0], abs=1e-12)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y)[0], abs=1e-12)


def test_spearman_of_six_points_by_hand():
    # One neighbouring pair swapped: sum of d² is 2, rho = 1 - 6·2/(6·35) = 33/35. At least as
    # extreme: the identity and its 5 neighbouring swaps, and their 6 mirror images: 12 of 720.
    accuracy, confidence = [0.1, 0.4, 0.6, 0.7, 0.8, 0.9], [0.2, 0.3, 0.5, 0.6, 0.9, 0.8]
    assert spearman(accuracy, confidence) == pytest.approx(33 / 35)
    assert spearman_permutation_p(accuracy, confidence) == pytest.approx(12 / 720)
    assert spearman_permutation_p(accuracy, accuracy[::-1]) == pytest.approx(2 / 720)


def test_permutation_p_agrees_with_scipy():
    x, y = [1, 2, 3, 4, 5], [2, 1, 5, 3, 4]
    exact = stats.permutation_test(
        (y,),
        lambda s: stats.spearmanr(x, s)[0],
        permutation_type="pairings",
        n_resamples=9999,
        vectorized=False,
    )
    assert spearman_permutation_p(x, y) == pytest.approx(exact.pvalue)


def test_permutation_p_with_ties_by_hand():
    # x has two equal values: of the 6 orders of y, the pair {1, 2}, {1, 3} or {2, 3} falls on the
    # tie, twice each. rho is largest in size for 3 alone above (or 1 alone below) the tie: 4 of 6.
    assert spearman_permutation_p([1, 1, 2], [1, 2, 3]) == pytest.approx(4 / 6)


# P-values from a coefficient and n


def test_a_p_needs_three_points_and_a_coefficient():
    p = spearman_exact_p
    assert np.isnan([p(0.5, 2), p(0.5, 0), p(1.0, 2), p(NAN, 6)]).all()
    for bad in ((1.001, 6), (-2, 6), (np.inf, 6), (0.5, 5.5), (0.5, -1), (0.5, NAN), (0.5, np.inf)):
        with pytest.raises(ValueError, match="received"):
            p(*bad)


def test_exact_p_of_a_printed_rho_by_hand():
    # Of 720 orders of six points, 12 have |rho| >= 33/35 = 0.942857, printed 0.943; 24 have at
    # least 31/35 = 0.885714.
    assert spearman_exact_p(0.943, 6) == pytest.approx(12 / 720)
    # no order reaches it but the two straight ones
    assert spearman_exact_p(0.943, 6, rounding=0) == pytest.approx(2 / 720)
    assert spearman_exact_p(1, 6) == pytest.approx(2 / 720) and spearman_exact_p(0, 6) == 1
    assert spearman_exact_p(-0.886, 6) == spearman_exact_p(0.886, 6) == pytest.approx(24 / 720)


@each("n", [3, 5, 6, 8])
def test_exact_p_is_the_permutation_p_of_points_with_that_rho(n):
    x, y = np.random.default_rng(n).random((2, n))
    assert spearman_exact_p(round(spearman(x, y), 3), n) == pytest.approx(
        spearman_permutation_p(x, y)
    )


def test_exact_p_of_an_unrounded_rho_needs_no_allowance_for_rounding():
    # Multiples of 1/10 are not exact in binary, and each must still meet itself.
    for order in permutations([0.1, 0.2, 0.3, 0.4, 0.5]):
        p = spearman_permutation_p(range(5), order)
        assert spearman_exact_p(spearman(range(5), order), 5, rounding=0) == pytest.approx(p)


def test_exact_p_refuses_many_points_and_negative_rounding():
    for bad in ((0.5, 9), (0.5, 6, -0.1), (0.5, 6, NAN)):
        with pytest.raises(ValueError, match="received"):
            spearman_exact_p(*bad)


# Permutations


@each("n", [4, 6])
def test_permutation_p_of_pearson_counts_every_pairing(n):
    x, y = np.random.default_rng(n).random((2, n))
    every = [abs(stats.pearsonr(x, np.array(order))[0]) for order in permutations(y)]
    assert pearson_permutation_p(x, y) == pytest.approx(
        np.mean(np.array(every) >= abs(stats.pearsonr(x, y)[0]) - 1e-12)
    )
    assert (
        pearson_permutation_p(x, -y)
        == pearson_permutation_p(x, y)
        == pearson_permutation_p(x, 1e6 + 0.01 * y)
    )


def test_permutation_p_of_pearson_with_ties_by_hand():
    # y's 3 falls on the first or last point (|r| = 0.87) in four of six orders, on the middle one
    # (r = 0) in two.
    assert pearson_permutation_p([1, 2, 3], [1, 1, 3]) == pytest.approx(4 / 6)
    assert pearson_permutation_p([1, 2, 3], [1, 3, 1]) == 1  # r = 0: every pairing is as far


# Values that rho can take


@each("n", [3, 4, 5, 6])
def test_the_values_of_rho_are_those_of_every_order(n):
    every = {round(stats.spearmanr(range(n), order)[0], 9) for order in permutations(range(n))}
    assert spearman_values(n) == pytest.approx(sorted(every), abs=1e-9)


def test_over_six_points_rho_takes_36_values_two_35ths_apart():
    values = spearman_values(6)
    assert (
        len(values) == 36
        and np.allclose(np.diff(values), 2 / 35)
        and values[[0, -1]].tolist() == [-1, 1]
    )
    assert len(spearman_values(30)) == 30 * 899 // 6 + 1
