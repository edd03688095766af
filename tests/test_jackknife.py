"""Leaving one case out at a time: by hand, against the textbook's mean, and where a bootstrap goes
astray."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from trustlab.metrics.agreement import count_votes, fleiss_kappa_weighted, gwet_ac1_weighted
from trustlab.metrics.estimate import TOO_FEW, case_weights, jackknife_interval, percentile_interval

NAN = float("nan")


def without_each(values: np.ndarray) -> np.ndarray:
    """The mean without each value in turn."""
    return (values.sum() - values) / (len(values) - 1)


def test_of_a_mean_it_is_students_interval() -> None:
    values = np.random.default_rng(0).normal(3, 2, 25)
    low, high, reason = jackknife_interval(values.mean(), without_each(values))
    assert (low, high) == pytest.approx(
        t.interval(0.95, 24, values.mean(), values.std(ddof=1) / 5)
    ) and reason == ""
    assert jackknife_interval(values.mean(), without_each(values), 0.8)[:2] == pytest.approx(
        t.interval(0.8, 24, values.mean(), values.std(ddof=1) / 5)
    )


def test_it_is_cut_where_the_statistic_can_go_no_further() -> None:
    values = np.array([1.0] * 18 + [0.0])
    low, high, _ = jackknife_interval(values.mean(), without_each(values), most=1.0)
    assert high == 1 and low == pytest.approx(
        2 * values.mean() - jackknife_interval(values.mean(), without_each(values))[1]
    )


@pytest.mark.parametrize("kappa", [fleiss_kappa_weighted, gwet_ac1_weighted])
def test_it_holds_a_kappa_that_the_bootstrap_of_the_same_cases_misses(kappa) -> None:
    """Doctors who agree on nothing, twelve cases, forty diagnoses: a case drawn twice passes for
    chance agreement."""
    rng, missed = np.random.default_rng(1), 0
    for _ in range(40):
        votes = count_votes([[str(d) for d in rng.integers(0, 40, 3)] for _ in range(12)])
        value = float(kappa(votes, np.ones((1, 12)))[0])
        low, high = percentile_interval(kappa(votes, case_weights(np.arange(12), 200, 0)))
        missed += not low <= value <= high
        low, high, reason = jackknife_interval(value, kappa(votes, 1 - np.eye(12)), most=1.0)
        assert low < value < high <= 1 and reason == ""
    assert missed >= 5


def test_no_interval_has_its_reason() -> None:
    for value, each, why in (
        (0.5, np.linspace(0, 1, 9), TOO_FEW),
        (0.5, [*np.linspace(0, 1, 11), NAN], "no interval: undefined without one of the cases"),
        (NAN, np.linspace(0, 1, 12), "no interval: undefined without one of the cases"),
        (0.5, np.full(12, 0.5), "no interval: the same without any one of the cases"),
    ):
        low, high, reason = jackknife_interval(value, each)
        assert np.isnan([low, high]).all() and reason == why


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((0.5, np.zeros((3, 3))), "left_out must"),
        ((0.5, [np.inf] * 12), "finite"),
        ((np.inf, np.zeros(12)), "finite"),
    ],
)
def test_what_is_not_a_statistic_is_refused(given, message) -> None:
    with pytest.raises(ValueError, match=message):
        jackknife_interval(*given)
    with pytest.raises(ValueError, match="level must lie"):
        jackknife_interval(0.5, np.linspace(0, 1, 12), 1.0)
