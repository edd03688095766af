"""What chance gives a correlation: of confidences that rise, and of any order."""

import numpy as np
import pytest
from each import each
from scipy.stats import pearsonr, spearmanr

from trustlab.metrics.correlation import (
    rising_band,
    rising_null,
    spearman_exact_p,
    unordered_band,
)

STEEP, EVEN = (16, 64, 82, 90, 95, 96), (10, 20, 30, 40, 50, 60)


def test_the_band_is_that_of_the_run_s_own_accuracies():
    # Of a million draws; the steep curve is DDXPlus-like.
    assert rising_band(STEEP) == pytest.approx((0.616, 0.844, 0.986), abs=0.004)
    assert rising_band(EVEN) == pytest.approx((0.856, 0.962, 0.993), abs=0.004)
    rng = np.random.default_rng(9)
    by_hand = [pearsonr(STEEP, rng.standard_exponential(6).cumsum())[0] for _ in range(4000)]
    assert np.median(by_hand) == pytest.approx(rising_band(STEEP)[1], abs=0.01)


def test_neither_unit_nor_start_of_the_accuracies_matters_but_their_order_does():
    shares = np.array(STEEP) / 100
    assert rising_band(shares) == pytest.approx(rising_band(STEEP))
    assert rising_band(0.2 + shares / 2) == pytest.approx(rising_band(STEEP))
    assert rising_band(STEEP[::-1])[2] < 0


@each("accuracies", [STEEP, (3, 5, 7, 6.6, 8, 8), (5, 4, 3, 2), (1, 9, 2, 8)])
def test_every_rising_confidence_has_the_same_rank_correlation(accuracies):
    rho = spearmanr(accuracies, range(len(accuracies)))[0]
    assert rising_null(accuracies, "spearman", 50) == pytest.approx(np.full(50, rho))
    assert rising_band(accuracies, "spearman") == pytest.approx((rho, rho, rho))


def test_accuracies_all_the_same_have_no_band():
    assert np.isnan([rising_band([0.1 + 0.2, 0.3, 0.3], s) for s in ("pearson", "spearman")]).all()


def test_draws_repeat_with_their_seed():
    first, again, other = (rising_null(STEEP, n_draws=50, seed=seed) for seed in (0, 0, 1))
    assert (first == again).all() and (first != other).any()


def test_the_critical_value_of_six_unordered_points_is_that_of_the_tables():
    # 24 of 720 orders have |rho| >= 31/35 (3.3 %), 42 at least 29/35 (5.8 %).
    low, median, high = unordered_band()
    assert high == pytest.approx(31 / 35) and (low, median) == (-high, 0)
    assert spearman_exact_p(29 / 35, 6) == pytest.approx(42 / 720)
    assert unordered_band(8)[2] == pytest.approx(0.738, abs=5e-4)


def test_four_points_are_too_few_for_a_critical_value():
    assert np.isnan(unordered_band(4)[2]) and unordered_band(5)[2] == 1


@each(
    "call",
    [
        lambda: rising_null([0.1, 0.2]),
        lambda: rising_band([0.1, 0.2, np.nan]),
        lambda: rising_band(6),
        lambda: rising_null(STEEP, n_draws=0),
        lambda: rising_null(STEEP, statistic="kendall"),
        lambda: unordered_band(9),
        lambda: unordered_band(2),
    ],
)
def test_bad_arguments_are_refused(call):
    with pytest.raises(ValueError, match=r"received|allowed"):
        call()
