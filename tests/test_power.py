"""How many cases tell two AUROCs apart: by hand, by the source's example, by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from each import each

from trustlab.metrics.significance import (
    auroc_difference_standard_error,
    auroc_standard_error,
    cases_shown,
    sample_size_for_power,
)

NAN = float("nan")


def test_the_formula_by_hand():
    # Q1 = 0.8/1.2 = 2/3, Q2 = 1.28/1.8; 0.16 + 19 (2/3 - 0.64) + 9 (1.28/1.8 - 0.64) = 1.30667 over
    # 20 * 10 pairs
    assert auroc_standard_error(0.8, 20, 10) == pytest.approx(
        math.sqrt((0.16 + 19 * (2 / 3 - 0.64) + 9 * (1.28 / 1.8 - 0.64)) / 200)
    )
    assert auroc_standard_error(0.8, 20, 10) == pytest.approx(0.0808, abs=5e-5)


def test_the_example_of_hanley_and_mcneil_1982():
    assert auroc_standard_error(0.893, 51, 58) == pytest.approx(0.0325, abs=5e-5)


def test_it_is_the_spread_of_the_auroc_where_confidences_are_exponential_as_its_model_says():
    rng, n_right, n_wrong, mean = np.random.default_rng(0), 30, 12, 3.0  # AUROC = mean / (1 + mean)
    right, wrong = rng.exponential(mean, (4000, n_right)), rng.exponential(1.0, (4000, n_wrong))
    areas = (right[:, :, None] > wrong[:, None, :]).mean(axis=(1, 2))
    assert areas.mean() == pytest.approx(0.75, abs=0.005)
    assert auroc_standard_error(0.75, n_right, n_wrong) == pytest.approx(areas.std(), rel=0.04)
    # the two counts are not one
    assert auroc_standard_error(0.75, n_wrong, n_right) != pytest.approx(areas.std(), rel=0.1)


def test_a_difference_of_separate_samples_adds_variances_and_of_the_same_answers_less():
    one, other = auroc_standard_error(0.8, 40, 30), auroc_standard_error(0.7, 40, 30)
    apart, paired = (auroc_difference_standard_error(0.8, 0.7, 40, 30, r) for r in (0.0, 0.6))
    assert apart == pytest.approx(math.hypot(one, other))
    assert paired**2 == pytest.approx(one**2 + other**2 - 1.2 * one * other) and paired < apart


def test_two_errors_that_cancel_leave_none():
    assert math.isnan(auroc_difference_standard_error(0.8, 0.8, 40, 30, 1.0))


def test_cases_by_hand():
    # (1.959964 + 0.841621) * 0.05 / 0.1 = 1.400793; its square times 40 is 78.49
    assert sample_size_for_power(0.1, 0.05, 40) == 79 == sample_size_for_power(-0.1, 0.05, 40)
    # (1.644854 + 1.281552)**2 / 4 * 40 = 85.64
    assert sample_size_for_power(0.1, 0.05, 40, power=0.9, alpha=0.1) == 86


def test_half_the_difference_takes_four_times_the_cases():
    assert sample_size_for_power(0.001, 0.05, 40) == pytest.approx(
        4 * sample_size_for_power(0.002, 0.05, 40), rel=1e-3
    )


def test_that_many_cases_do_tell_it_four_times_in_five():
    rng, difference, spread = np.random.default_rng(1), 0.3, 1.0
    n = int(sample_size_for_power(difference, spread / math.sqrt(20), 20))
    means = rng.normal(difference, spread / math.sqrt(n), 20_000)
    assert np.mean(np.abs(means) > 1.959964 * spread / math.sqrt(n)) == pytest.approx(0.8, abs=0.01)


def test_it_never_asks_for_fewer_than_two_cases():
    assert sample_size_for_power(0.9, 1e-6, 40) == 2


@each(
    ("auroc", "n_right", "n_wrong"), [(NAN, 5, 5), (0.7, 0, 5), (0.7, 5, 0), (1, 5, 5), (0, 5, 5)]
)
def test_an_auroc_that_is_missing_or_perfect_or_of_one_kind_has_no_error(auroc, n_right, n_wrong):
    assert math.isnan(auroc_standard_error(auroc, n_right, n_wrong))
    assert math.isnan(auroc_difference_standard_error(auroc, 0.6, n_right, n_wrong, 0.5))


@each(
    ("difference", "error", "n"),
    [(0, 0.1, 40), (NAN, 0.1, 40), (0.1, NAN, 40), (0.1, 0, 40), (0.1, 0.1, 0), (0.1, math.inf, 9)],
)
def test_no_difference_no_error_or_no_case_gives_no_number(difference, error, n):
    assert math.isnan(sample_size_for_power(difference, error, n))


@each(
    ("call", "message"),
    [
        (lambda: auroc_standard_error(1.2, 5, 5), "auroc must lie between 0 and 1; received 1.2"),
        (lambda: auroc_standard_error(0.7, -1, 5), "received -1 and 5"),
        (
            lambda: auroc_difference_standard_error(0.7, 0.6, 5, 5, 1.5),
            "correlation must lie between -1 and 1; received 1.5",
        ),
        (
            lambda: sample_size_for_power(0.1, -0.1, 40),
            "standard_error and n_cases must be at least 0",
        ),
        (lambda: sample_size_for_power(0.1, 0.1, 40, power=1.0), "power between alpha and 1"),
        (lambda: sample_size_for_power(0.1, 0.1, 40, power=0.04), "power between alpha and 1"),
        (lambda: sample_size_for_power(0.1, 0.1, 40, alpha=0), "alpha must lie between 0 and 1"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_number_of_cases_to_read():
    assert [cases_shown(n) for n in (67.0, 1234.0, 10_000.0, 10_001.0, NAN)] == [
        "67",
        "1,234",
        "10,000",
        "> 10,000",
        "–",
    ]
