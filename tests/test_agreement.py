"""Cohen's kappa on tables small enough to count by hand."""

from __future__ import annotations

import numpy as np
import pytest
from resampled import case_weights, cohen_kappa
from sklearn.metrics import cohen_kappa_score

from trustlab.metrics.agreement import COUNTS, agreement, cohen_kappa_weighted
from trustlab.metrics.estimate import percentile_interval

pytestmark = pytest.mark.usefixtures("every_interval")


# 20 both right, 5 only the first, 10 only the second, 15 both wrong: 0.7 agree, 0.5 by chance
FIRST = np.repeat([1, 1, 0, 0], [20, 5, 10, 15])
SECOND = np.repeat([1, 0, 1, 0], [20, 5, 10, 15])
CASES = np.arange(50) // 2


def test_kappa_by_hand_and_as_scikit_learn_has_it() -> None:
    assert cohen_kappa(FIRST, SECOND) == pytest.approx(0.4)  # (0.7 - 0.5) / (1 - 0.5)
    for first, second, kappa in [
        ([1, 0, 1], [1, 0, 1], 1),
        ([1, 0], [0, 1], -1),
        ([1, 1], [1, 0], 0),
    ]:
        assert cohen_kappa(first, second) == pytest.approx(kappa)
    rng = np.random.default_rng(0)
    for share in (0.1, 0.5, 0.9):
        one, other = rng.random((2, 40)) < share
        theirs = cohen_kappa_score(one, other, labels=[0, 1])
        assert cohen_kappa(one, other) == pytest.approx(theirs)
    weights = np.array([np.ones(50), np.zeros(50), (FIRST == SECOND).astype(float)])
    found = cohen_kappa_weighted(FIRST, SECOND, weights)  # a weight counts an answer that often
    assert found == pytest.approx([0.4, np.nan, 1], nan_ok=True)


def test_the_counts_say_where_two_graders_part() -> None:
    kappa, share = agreement(FIRST, SECOND, CASES, n_draws=200)
    for line in (kappa, share):
        assert [line[k] for k in ("n", *COUNTS)] == [50, 20, 5, 10, 15] and line["n_cases"] == 25
        assert line["low"] < line["value"] < line["high"] and line["missing"] == ""
    assert [(x["metric"], x["value"]) for x in (kappa, share)] == [
        ("kappa", pytest.approx(0.4)),
        ("agreement", 0.7),
    ]


def test_the_intervals_resample_cases() -> None:
    found = agreement(FIRST, SECOND, CASES, n_draws=300, seed=3)
    drawn = [np.repeat(np.arange(50), weights) for weights in case_weights(CASES, 300, 3)]
    for line, of in zip(found, (cohen_kappa, lambda a, b: (a == b).mean()), strict=True):
        draws = [of(FIRST[rows], SECOND[rows]) for rows in drawn]
        assert (line["low"], line["high"]) == pytest.approx(percentile_interval(draws))


def test_an_undefined_kappa_says_why_and_keeps_its_counts() -> None:
    kappa, share = agreement([1, 1, 1], [1, 1, 1], ["a", "a", "b"])
    assert np.isnan([kappa["value"], kappa["low"]]).all()
    assert share["value"] == 1 and kappa["n"] == 3
    assert kappa["missing"] == "kappa is undefined: each grader says the same of all answers"


def test_what_one_did_not_grade_is_missing_and_nothing_that_both_graded_is_no_agreement() -> None:
    kappa, _ = agreement([1, 0, np.nan, 1], [1, 0, 1, np.nan], list("abcd"))
    assert [kappa[k] for k in ("n", "n_missing", "both_right", "value")] == [2, 2, 1, 1]
    for nothing in (agreement([], [], []), agreement([1.0], [np.nan], ["a"])):
        assert {x["n"] for x in nothing} == {0} and np.isnan([x["value"] for x in nothing]).all()
        assert {x["missing"] for x in nothing} == {"no answer that both graded"}
