"""What chance gives a correlation: of series that rise, beside known accuracies or without."""

import numpy as np
import pytest
from each import each
from scipy.stats import pearsonr, spearmanr

from trustlab.metrics.correlation import (
    pearson_rows,
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


def test_two_unrelated_rising_series_are_highly_correlated():
    draws = rising_null(6)
    low, median, high = rising_band(6)
    assert draws.shape == (20_000,) and draws.min() > 0 and draws.max() <= 1
    assert (low, median, high) == pytest.approx(np.quantile(draws, [0.025, 0.5, 0.975]))
    # of a million draws
    assert (low, median, high) == pytest.approx((0.726, 0.925, 0.991), abs=0.004)


def test_the_null_is_that_of_sorted_uniform_numbers():
    rng = np.random.default_rng(5)
    by_hand = pearsonr(*np.sort(rng.random((2, 20_000, 6)), axis=-1), axis=-1)[0]
    for share in (0.025, 0.25, 0.5, 0.75):
        assert np.quantile(rising_null(6), share) == pytest.approx(
            np.quantile(by_hand, share), abs=0.008
        )


def test_more_points_rise_more_alike():
    bands = [rising_band(n) for n in (3, 6, 20)]
    assert bands[0][0] < bands[1][0] < bands[2][0] and bands[0][1] < bands[2][1]


def test_any_two_rising_series_have_a_spearman_of_one():
    assert (rising_null(6, "spearman", 500) == 1).all() and rising_band(6, "spearman") == (1, 1, 1)


def test_noise_takes_the_order_away():
    clear, some, much = (
        rising_band(6, "spearman", noise=noise, n_draws=4000) for noise in (0.02, 0.1, 50)
    )
    assert clear[0] > some[0] > much[0] and some[1] < 1
    assert much[1] == pytest.approx(0, abs=0.05) and much[2] == pytest.approx(
        unordered_band()[2], abs=0.06
    )


def test_noise_is_in_units_of_each_series_own_range():
    # The noise of a series is a tenth of its last less its first point, whatever its length in
    # steps.
    rng = np.random.default_rng(3)
    series = np.cumsum(rng.standard_exponential((2, 50, 4)), axis=-1)
    added = 0.1 * (series[..., -1] - series[..., 0])[..., None] * rng.standard_normal((2, 50, 4))
    np.testing.assert_allclose(
        rising_null(4, n_draws=50, seed=3, noise=0.1), pearson_rows(*(series + added))
    )


def test_draws_repeat_with_their_seed():
    assert (rising_null(6, n_draws=50) == rising_null(6, n_draws=50)).all() and (
        rising_null(6, n_draws=50) != rising_null(6, n_draws=50, seed=1)
    ).any()


def test_the_level_says_how_much_of_the_null_is_in_the_band():
    draws, (low, _, high) = rising_null(6), rising_band(6, level=0.5)
    assert np.mean((draws >= low) & (draws <= high)) == pytest.approx(0.5, abs=0.001)


def test_the_critical_value_of_six_unordered_points_is_that_of_the_tables():
    # 24 of 720 orders have |rho| >= 31/35 (3.3 %), 42 at least 29/35 (5.8 %).
    low, median, high = unordered_band()
    assert high == pytest.approx(31 / 35) and (low, median) == (-high, 0)
    assert spearman_exact_p(29 / 35, 6) == pytest.approx(42 / 720)
    assert unordered_band(6, 0.94)[2] == pytest.approx(29 / 35) and unordered_band(8)[
        2
    ] == pytest.approx(0.738, abs=5e-4)


def test_four_points_are_too_few_for_a_critical_value():
    assert np.isnan(unordered_band(4)[2]) and unordered_band(5)[2] == 1


@each(
    "call",
    [
        lambda: rising_null(2),
        lambda: rising_null([0.1, 0.2]),
        lambda: rising_band([0.1, 0.2, np.nan]),
        lambda: rising_band(6.0),
        lambda: rising_null(6, n_draws=0),
        lambda: rising_null(6, statistic="kendall"),
        lambda: rising_null(6, noise=-0.1),
        lambda: rising_null(6, noise=np.inf),
        lambda: rising_null(6, noise=np.nan),
        lambda: rising_band(6, level=95),
        lambda: unordered_band(level=0),
        lambda: unordered_band(9),
        lambda: unordered_band(2),
    ],
)
def test_bad_arguments_are_refused(call):
    with pytest.raises(ValueError, match=r"received|allowed"):
        call()
