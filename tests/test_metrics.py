"""Metrics against scikit-learn and values worked out by hand; test_degenerate.py: their edges."""

import numpy as np
import pytest
from each import each
from resampled import auprc_weighted, auroc_weighted, case_weights
from sklearn.metrics import average_precision_score, roc_auc_score

from trustlab.metrics import auprc, auroc, brier, ece
from trustlab.metrics.calibration import ece_weighted
from trustlab.metrics.estimate import TOO_FEW, UNDEFINED, bounded_interval, percentile_interval
from trustlab.metrics.ties import reaches, tied


def scored(n: int, n_values: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Answers whose confidences take n_values values (few: many ties) and lean the right way."""
    rng = np.random.default_rng(seed)
    correct = rng.integers(0, 2, n)
    return correct, np.round((rng.random(n) + 0.3 * correct) * n_values) / n_values


def test_a_group_is_a_millionth_of_the_spread_wide():
    spread = [*[0.0] * 10, *[1.0] * 10]
    near = [*spread, 0.3, 0.5 + 9e-7, 0.5, 0.5 + 1.8e-6, 0.5, 0.5 + 3e-6, np.nan]
    expected = [*spread, 0.3, 0.5, 0.5, 0.5 + 1.8e-6, 0.5, 0.5 + 3e-6, np.nan]
    np.testing.assert_array_equal(tied([near, near[::-1]]), [expected, expected[::-1]])
    mostly_one = [*[5.0] * 98, 5 + 1e-7, 6.0]  # the percentiles are alike: smallest and largest
    assert tied(mostly_one).tolist() == [*[5.0] * 99, 6.0]


def test_a_threshold_is_reached_from_the_width_of_a_tie_below_it():
    assert reaches([0.8, 0.8 - 4e-7, 2.0, 0.2], 0.8).tolist() == [True, True, True, False]
    assert not reaches([0.8 - 2e-6, 0.2, np.nan], 0.8).any()
    assert reaches([1e9, -1e9], np.inf).tolist() == [False, False]
    assert reaches([5e-9, 1e-9], 4e-9).tolist() == [True, False]
    assert reaches(0.3 - 5e-16, 0.3) and not reaches(0.3 - 1e-12, 0.3)


@each("n_values", [1, 2, 5, 10_000])
@each("whole", [True, False])
def test_discrimination_agrees_with_scikit_learn(n_values, whole):
    correct, confidence = scored(60, n_values)
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 4, (20, 60)) if whole else rng.random((20, 60))
    for plain, weighted, theirs in (
        (auroc, auroc_weighted, roc_auc_score),
        (auprc, auprc_weighted, average_precision_score),
    ):
        assert plain(correct, confidence) == pytest.approx(theirs(correct, confidence), abs=1e-12)
        expected = [theirs(correct, confidence, sample_weight=w) for w in weights]
        np.testing.assert_allclose(weighted(correct, confidence, weights), expected, atol=1e-12)


def test_auroc_by_hand_and_missing_where_a_weighting_leaves_one_class():
    # Pairs (correct, wrong): 0.9>0.8, 0.9>0.1, 0.5<0.8, 0.5>0.1, 0.8=0.8, 0.8>0.1: 4 won, 1 tied
    assert auroc([1, 0, 1, 1, 0], [0.9, 0.8, 0.5, 0.8, 0.1]) == pytest.approx(4.5 / 6)
    weights = np.array([[1, 1, 1], [1, 0, 1], [0, 2, 0], [0, 0, 0]])
    found = auroc_weighted([1, 0, 1], [0.9, 0.5, 0.1], weights)
    np.testing.assert_array_equal(found, [0.5, np.nan, np.nan, np.nan])
    assert np.isnan(auprc_weighted([1, 0, 1], [0.9, 0.5, 0.1], weights)[1:]).all()


def test_brier_and_ece_by_hand():
    correct, confidence = [1, 0, 1, 1], [0.9, 0.2, 0.6, 0.4]
    assert brier(correct, confidence) == pytest.approx((0.01 + 0.04 + 0.16 + 0.36) / 4)
    # Two bins: {0.2, 0.4} half right, said 0.3 on average; {0.6, 0.9} all right, said 0.75.
    assert ece(correct, confidence, bins=2) == pytest.approx((0.2 + 0.25) / 2)
    assert ece(correct, confidence, bins=1) == pytest.approx(0.75 - 0.525)
    for value in (1.1, -0.1):
        with pytest.raises(ValueError, match=str(value)):
            brier([1, 0], [0.5, value])


def test_ece_has_bins_of_equal_mass_and_keeps_equal_confidences_together_in_any_order():
    # Far from equal width: all confidences lie in the lowest twentieth.
    confidence = np.linspace(0.001, 0.05, 30)
    correct = np.arange(30) % 2
    by_hand = sum(abs(np.sum((correct - confidence)[i : i + 2])) for i in range(0, 30, 2)) / 30
    assert ece(correct, confidence, bins=15) == pytest.approx(by_hand)
    assert ece(np.array([0, 0, 0, 1, 1, 1]), np.full(6, 0.5)) == 0
    many, prob = scored(100, 7)
    prob, shuffle = prob / 2, np.random.default_rng(0).permutation(100)
    assert ece(many, prob) == pytest.approx(ece(many[shuffle], prob[shuffle]), abs=1e-12)


@each("weighted, plain", [(auroc_weighted, auroc), (ece_weighted, ece)])
def test_a_weight_is_a_repetition(weighted, plain):
    correct, confidence = scored(50, 20)
    weights = case_weights(np.arange(50), n_draws=8)
    again = [plain(np.repeat(correct, w), np.repeat(confidence / 2, w)) for w in weights]
    np.testing.assert_allclose(weighted(correct, confidence / 2, weights), again, atol=1e-12)


def test_a_case_is_drawn_with_all_its_rows_by_its_seed_in_any_order():
    ids = np.array(["b", "a", "b", "c", "a", "b"])
    weights = case_weights(ids, n_draws=50)
    assert weights.shape == (50, 6)
    np.testing.assert_array_equal(weights[:, [0, 1]], weights[:, [2, 4]])
    assert (weights[:, 0] + weights[:, 1] + weights[:, 3] == 3).all()
    assert weights[:, 3].mean() == pytest.approx(1, abs=0.5)
    np.testing.assert_array_equal(case_weights(ids, 20, seed=4), case_weights(ids, 20, seed=4))
    assert (case_weights(ids, 20, seed=4) != case_weights(ids, 20, seed=5)).any()
    np.testing.assert_array_equal(case_weights(ids[::-1], 20), case_weights(ids, 20)[:, ::-1])


def test_resampling_cases_is_wider_than_resampling_rows():
    # Six identical rows a case: an interval over rows believes in six times the data, so is sqrt(6)
    # = 2.4 times too narrow.
    ids = np.repeat(np.arange(80), 6)
    correct = np.repeat(np.random.default_rng(0).integers(0, 2, 80), 6)
    confidence = np.repeat(np.random.default_rng(1).random(80), 6)
    widths = []
    for units in (ids, np.arange(480)):
        draws = auroc_weighted(correct, confidence, case_weights(units, 400))
        low, high = percentile_interval(draws)
        widths.append(high - low)
    assert 2 < widths[0] / widths[1] < 3


def test_percentile_interval_by_hand_leaves_out_undefined_draws_up_to_a_tenth():
    assert percentile_interval(np.arange(101.0)) == pytest.approx((2.5, 97.5))
    assert percentile_interval(np.append(np.arange(9.0), np.nan)) == pytest.approx((0.2, 7.8))
    assert np.isnan(percentile_interval(np.append(np.arange(8.0), [np.nan, np.nan]))).all()


ALIKE = "no interval: all draws alike"


@each(
    ("draws", "n_cases", "reason"),
    [
        (np.arange(101.0), 11, TOO_FEW),
        (np.arange(101.0), 12, ""),
        (np.linspace(0.5, 0.5 + 1e-9, 101), 12, ""),
        ([np.nan] * 11 + list(range(90)), 12, UNDEFINED),
        ([np.nan] * 101, 12, UNDEFINED),
        ([0.7] * 100 + [np.nan], 12, ALIKE),
        ([0.1 + 0.2] * 50 + [0.3] * 51, 12, ALIKE),  # equal but for rounding
        ([1e9 * (0.1 + 0.2)] * 50 + [0.3e9] * 51, 12, ALIKE),
        ([0.0] + [1.0] * 100, 12, "no interval: nearly all draws alike"),
        ([0.0] * 5 + [1.0] * 95, 12, ""),
    ],
)
def test_an_interval_needs_cases_values_and_width_and_else_gives_the_reason(draws, n_cases, reason):
    low, high, why = bounded_interval(draws, np.repeat(np.arange(n_cases), 3))
    assert why == reason
    expected = (np.nan, np.nan) if reason else percentile_interval(draws)
    assert (low, high) == pytest.approx(expected, nan_ok=True) and (reason or low < high)
