"""Coefficients of variation over conditions: by hand, by properties, and what has none."""

from __future__ import annotations

import numpy as np
import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st
from resampled import case_weights

from benchmarks.records import random_records
from trustlab.confidence import METHODS, select
from trustlab.metrics.estimate import percentile_interval
from trustlab.metrics.stability import CVS, cv_group, cv_group_by_chance, cv_sample

pytestmark = pytest.mark.usefixtures("every_interval")


NAN = float("nan")
ALIKE = "no interval: all draws alike"
BOTH = pytest.mark.parametrize("cv", [cv_group, cv_sample])
MANY = np.random.default_rng(1).uniform(0.1, 1, (60, 3))
CASES = np.repeat(np.arange(20), 3)


def test_by_hand() -> None:
    # Means of the conditions: 0.4, 0.5, 0.6. sd sqrt(0.02/3) = 0.081650, mean 0.5: 16.3299 %. Rows:
    # (0.2, 0.4, 0.6) sd 0.163299, mean 0.4: 40.8248 %; (0.6, 0.6, 0.6): 0 %; on average 20.4124 %.
    rows, cases = [[0.2, 0.4, 0.6], [0.6, 0.6, 0.6]], ["a", "b"]
    assert cv_group(rows, cases)["value"] == pytest.approx(16.3299, abs=1e-4)
    assert cv_sample(rows, cases)["value"] == pytest.approx(20.4124, abs=1e-4)


def test_two_changes_that_cancel_move_the_samples_and_not_the_group() -> None:
    rows, cases = [[0.4, 0.6], [0.6, 0.4]], ["a", "b"]
    assert cv_group(rows, cases)["value"] == 0
    assert cv_sample(rows, cases)["value"] == pytest.approx(20)


def test_values_that_are_all_alike_have_no_interval_and_others_have() -> None:
    same_row = np.tile([0.2, 0.4, 0.6], (30, 1))
    # each case steady, at a height of its own
    steady = np.linspace(0.1, 0.9, 30)[:, None] * [
        1,
        1,
        1,
    ]
    for cv in (cv_group, cv_sample):
        assert (
            cv(same_row, np.arange(30))["missing"] == cv(steady, np.arange(30))["missing"] == ALIKE
        )
        assert cv(MANY, CASES, 50)["missing"] == ""


def test_chance_is_what_shuffled_conditions_give() -> None:
    moved = MANY + [0, 0.3, 0.6]
    # every row moves with its condition
    assert cv_group_by_chance(moved, 300) < cv_group(moved, CASES, 10)["value"]
    # One row, (0.4, 0.6): whichever way round, sd 0.1, mean 0.5.
    assert cv_group_by_chance([[0.4, 0.6]], 20) == pytest.approx(20)
    # Two rows: half of the shufflings cancel (0 %), half do not (20 %): the 95 % value is the
    # larger.
    assert cv_group_by_chance([[0.4, 0.6], [0.6, 0.4]], 200) == pytest.approx(20)
    assert cv_group([[0.4, 0.6], [0.6, 0.4]], ["a", "b"])["value"] == 0
    assert cv_group_by_chance(np.full((5, 3), 0.3), 20) == 0 and np.isnan(
        cv_group_by_chance([[NAN, 0.1]], 5)
    )
    assert (
        cv_group_by_chance(MANY, 50, 1)
        == cv_group_by_chance(MANY, 50, 1)
        != cv_group_by_chance(MANY, 50, 2)
    )


def test_of_exchangeable_conditions_one_in_twenty_lies_above_chance() -> None:
    rng = np.random.default_rng(3)
    made = rng.uniform(0.1, 1, (200, 60, 3))
    above = [cv_group(rows, CASES, 1)["value"] > cv_group_by_chance(rows, 200) for rows in made]
    assert 0.01 < np.mean(above) < 0.1


@each("metric", CVS)
def test_the_draws_are_of_the_cases_that_are_used(metric) -> None:
    rows = MANY.copy()
    rows[:3] = [[NAN, 0.2, 0.3], [0.0, 0.0, 0.0], [0.1, 0.2, NAN]]  # the first case: one row left
    used = ~np.isnan(rows).any(axis=1) & ((rows.mean(axis=1) > 0) | (metric == "cv_group"))
    kept, weights = rows[used], case_weights(CASES[used], 300, 5).astype(float)
    means = weights @ kept / weights.sum(axis=1, keepdims=True)
    each = weights @ (100 * kept.std(axis=1) / np.where(kept.mean(axis=1), kept.mean(axis=1), 1))
    drawn = {
        "cv_group": 100 * means.std(axis=1) / means.mean(axis=1),
        "cv_sample": each / weights.sum(axis=1),
    }
    found = {"cv_group": cv_group, "cv_sample": cv_sample}[metric](rows, CASES, 300, 5)
    assert (found["low"], found["high"]) == pytest.approx(percentile_interval(drawn[metric]))


@each("cv", [cv_group, cv_sample])
def test_rows_that_lack_a_condition_are_left_out_of_all_and_counted(cv) -> None:
    found = cv([[0.2, 0.4], [NAN, 0.9], [0.3, NAN]], ["a", "b", "c"])
    assert (found["n"], found["n_cases"], found["n_missing"]) == (1, 1, 2)
    assert found["value"] == cv([[0.2, 0.4]], ["a"])["value"]


def test_a_row_of_noughts_has_no_cv_of_its_own_and_counts_in_the_means() -> None:
    rows, cases = [[0.0, 0.0], [0.4, 0.6]], ["a", "b"]
    sample, group = cv_sample(rows, cases), cv_group(rows, cases)
    wanted = {"n_zero": 1, "n_missing": 0, "value": pytest.approx(20)}
    assert sample | {"n": 1} | wanted == sample
    assert group | {"n": 2} | wanted == group


@each("cv", [cv_group, cv_sample])
@each(
    ("rows", "why"),
    [
        (np.zeros((12, 2)), "the mean confidence is 0"),
        (np.full((12, 2), NAN), "no row has a value in every condition"),
        (np.zeros((0, 2)), "no row has a value in every condition"),
    ],
)
def test_what_is_undefined_says_why(cv, rows: np.ndarray, why: str) -> None:
    found = cv(rows, np.arange(len(rows)))
    assert np.isnan([found["value"], found["low"], found["high"]]).all() and found["missing"] == why


@BOTH
@given(st.floats(0.01, 100))
def test_a_cv_does_not_depend_on_the_unit(cv, factor: float) -> None:
    value = cv(MANY, CASES, n_draws=1)["value"]
    assert cv(MANY * factor, CASES, n_draws=1)["value"] == pytest.approx(value)


@each("cv", [cv_group, cv_sample])
def test_the_order_of_rows_and_conditions_does_not_matter(cv) -> None:
    order = np.random.default_rng(0).permutation(60)
    other = cv(MANY[order][:, [2, 0, 1]], CASES[order], n_draws=1)["value"]
    assert other == pytest.approx(cv(MANY, CASES, n_draws=1)["value"])


@each("cv", [cv_group, cv_sample])
@each("rows", [[[0.1]], [0.1, 0.2], [[-0.1, 0.2]], [[float("inf"), 0.2]]])
def test_other_shapes_and_values_are_refused(cv, rows) -> None:
    with pytest.raises(ValueError, match=r"\(n, C\)|2 dimension|finite, from 0"):
        cv(rows, ["a"] * len(rows))


def test_the_ratio_scale_holds_every_probability_and_no_method_that_can_be_negative() -> None:
    assert all(m.ratio for m in METHODS.values() if m.scale == "probability")
    records = [made.generation for made in random_records(50, seed=3)]
    assert {m.name for m in select("ratio") for g in records if m.score(g) < 0} == set()
    assert not METHODS["perplexity"].ratio and METHODS["deg"].ratio
