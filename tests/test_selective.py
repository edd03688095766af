"""Risk and coverage: by hand, by every order of equal confidences, by other definitions."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from each import each
from resampled import aurc, case_weights, prediction_rejection_ratio

from studies.calibration import risk_coverage_table
from trustlab.metrics.selective import risk_at, selective_weighted

NAN = float("nan")


def orders(confidence) -> list[list[int]]:
    """Every order from the surest down, equal confidences in each order among themselves."""
    n = len(confidence)
    return [
        list(o)
        for o in permutations(range(n))
        if all(confidence[o[i]] >= confidence[o[i + 1]] for i in range(n - 1))
    ]


def risks(correct, order) -> np.ndarray:
    """Risk after 1, 2, ... n answers in this order."""
    wrong = 1 - np.asarray(correct)[order]
    return np.cumsum(wrong) / np.arange(1, len(wrong) + 1)


def scored(n: int, n_values: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Answers whose confidences take n_values values and lean the right way."""
    rng = np.random.default_rng(seed)
    correct = rng.integers(0, 2, n)
    return correct, np.floor((rng.random(n) + 0.4 * correct) * n_values)


# The curve and the area under it


def test_area_by_hand():
    # Risks 0, 0, 1/3, 1/2 of the right order, and 1, 1, 2/3, 1/2 of the wrong one.
    assert aurc([1, 1, 0, 0], [4, 3, 2, 1]) == pytest.approx((1 / 3 + 1 / 2) / 4)
    assert aurc([1, 1, 0, 0], [1, 2, 3, 4]) == pytest.approx((1 + 1 + 2 / 3 + 1 / 2) / 4)


@each("seed", range(12))
def test_the_area_is_the_mean_over_every_order_of_equal_confidences(seed):
    rng = np.random.default_rng(seed)
    correct, confidence = np.append(rng.integers(0, 2, 4), [0, 1]), rng.integers(0, 3, 6)
    expected = np.mean([risks(correct, order).mean() for order in orders(confidence)])
    assert aurc(correct, confidence) == pytest.approx(expected)


def test_risk_at_a_coverage_is_the_mean_over_every_order_too():
    correct, confidence = [1, 0, 1, 0, 1, 0], [2, 2, 2, 1, 1, 0]
    expected = np.mean([risks(correct, order) for order in orders(confidence)], axis=0)
    found = risk_at(correct, confidence, np.ones((1, 6), int), np.arange(1, 7) / 6)
    np.testing.assert_allclose(found[0], expected)


def test_the_ratio_is_1_for_the_right_order_and_negative_for_the_wrong_one():
    correct = np.array([1, 0, 1, 1, 0, 1, 1])
    assert prediction_rejection_ratio(correct, correct) == pytest.approx(1)
    assert prediction_rejection_ratio(correct, -correct) < 0


def test_the_ratio_is_the_share_of_the_possible_gain_by_hand():
    # Order right, wrong, right: risks 0, 1/2, 1/3; the best order has 0, 0, 1/3, any order 1/3
    # throughout.
    found = prediction_rejection_ratio([1, 0, 1], [3, 2, 1])
    assert found == pytest.approx((1 / 3 - (1 / 2 + 1 / 3) / 3) / (1 / 3 - 1 / 9))


def test_a_weight_is_a_repetition():
    correct, confidence = scored(30, 4)
    weights = case_weights(np.arange(30), n_draws=10)
    areas, ratios = selective_weighted(correct, confidence, weights)
    again = [(np.repeat(correct, w), np.repeat(confidence, w)) for w in weights]
    np.testing.assert_allclose(areas, [aurc(c, s) for c, s in again])
    np.testing.assert_allclose(ratios, [prediction_rejection_ratio(c, s) for c, s in again])
    grid = [0.1, 0.55, 1.0]
    several = risk_at(correct, confidence, weights, grid)
    single = [risk_at(c, s, np.ones((1, 30), int), grid)[0] for c, s in again]
    np.testing.assert_allclose(several, single)


def test_a_weighting_that_leaves_one_class_or_nothing_is_missing():
    areas, ratios = selective_weighted([1, 0], [2, 1], [[1, 1], [3, 0], [0, 0]])
    np.testing.assert_allclose(areas, [0.25, NAN, NAN])
    np.testing.assert_allclose(ratios, [1, NAN, NAN])


@each(
    "call",
    [
        lambda: aurc([1, 0], [0.5]),
        lambda: aurc([1, 0], [0.5, NAN]),
        lambda: prediction_rejection_ratio([1, 0], [0.5, np.inf]),
        lambda: selective_weighted([1, 0], [0.5, 0.4], [[0.5, 1]]),
        lambda: selective_weighted([1, 0], [0.5, 0.4], [[-1, 1]]),
        lambda: risk_at([1, 0], [0.5, 0.4], [[1, 1]], [0.0]),
        lambda: risk_at([1, 0], [0.5, 0.4], [[1, 1]], [1.1]),
    ],
)
def test_bad_arguments_are_refused(call):
    with pytest.raises(ValueError, match="received"):
        call()


# The tables


ALL = ("bad", "good", "flat", "gone", "half")


def tables(n: int = 30, methods=ALL) -> tuple[pd.DataFrame, pd.DataFrame]:
    """``n`` cases at two levels.

    "flat" is constant, "gone" has no value, "half" one in fewer than half of the answers.
    """
    rng = np.random.default_rng(5)
    correct = (rng.random(2 * n) < 0.6).astype(float)
    keys = pd.DataFrame(
        {"case_id": np.repeat([f"c{i:02d}" for i in range(n)], 2), "level": [1, 100] * n}
    )
    keys = keys.assign(dataset="d", model="x")
    said = {
        "good": 0.5 * correct + rng.random(2 * n),
        "bad": rng.random(2 * n),
        "flat": np.full(2 * n, 0.5),
        "gone": np.full(2 * n, NAN),
    }
    said["half"] = np.where(np.arange(2 * n) < 0.8 * n, said["good"], NAN)
    said["good"] = np.where(np.arange(2 * n) == 3, NAN, said["good"])
    parts = [
        keys.assign(method=name, confidence=said[name], bound="", missing="none")
        for name in methods
    ]
    return keys.assign(answer="a", correct=correct, missing=""), pd.concat(parts, ignore_index=True)


def test_curves_stand_on_the_rows_that_all_compared_methods_have_beside_two_references():
    answers, confidence = tables()
    found = risk_coverage_table(answers, confidence, ALL, coverages=(0.25, 0.5, 1.0), n_draws=100)
    assert list(dict.fromkeys(found["method"])) == [
        "oracle",
        "any order",
        "bad",
        "good",
        "flat",
        "gone",
        "half",
    ]
    assert found.groupby("method")["role"].unique().str[0].to_dict()["oracle"] == "reference"
    drawn = found.dropna(subset="value")
    assert (drawn[["n_shared", "n_missing"]] == [59, 1]).all(axis=None)
    shared = confidence.query("method == 'good'")["confidence"].notna().to_numpy()
    right = answers["correct"].to_numpy()[shared]
    rate = 1 - right.mean()
    curves = drawn.set_index(["method", "coverage"])["value"]
    assert curves["any order"].tolist() == pytest.approx([rate] * 3) == curves["flat"].tolist()
    assert curves["oracle"].tolist() == pytest.approx([0, max(0, 1 - right.mean() / 0.5), rate])
    said = confidence.query("method == 'bad'")["confidence"].to_numpy()[shared]
    assert curves["bad"].tolist() == pytest.approx(
        risk_at(right, said, np.ones((1, 59), int), [0.25, 0.5, 1.0])[0]
    )
    at_all = drawn[drawn["coverage"] == 1].groupby("method")[["low", "high"]].first()
    draws = case_weights(answers["case_id"], 100, 0)[:, shared]
    expected = np.quantile(draws @ (1 - right) / draws.sum(axis=1), [0.025, 0.975])
    np.testing.assert_allclose(
        at_all, [expected] * len(at_all)
    )  # the same draws for all: where all answers are given, one interval
    reasons = found.set_index("method")["missing"]
    assert (
        reasons["gone"] == "no confidence: none"
        and reasons["half"] == "a value in 24 of 60 answers only: not compared"
    )
    assert drawn.loc[drawn["low"].isna(), "missing"].str.startswith("no interval").all()


def test_only_the_methods_asked_for_are_compared_in_their_order():
    answers, confidence = tables()
    found = risk_coverage_table(
        answers, confidence, ["flat", "gone", "bad"], coverages=(1.0,), n_draws=20
    )
    assert list(dict.fromkeys(found["method"])) == ["oracle", "any order", "flat", "bad", "gone"]
    assert found.dropna(subset="value")["n"].tolist() == [60] * 4


def test_each_point_of_a_curve_counts_the_answers_given_there():
    answers, confidence = tables()
    found = risk_coverage_table(
        answers, confidence, ["bad", "flat"], coverages=(0.1, 0.5, 1.0), n_draws=200
    )
    points = found.set_index(["method", "coverage"])
    assert points.loc["bad", "n"].tolist() == [6, 30, 60]
    assert points.loc["flat", "n"].tolist() == [60] * 3  # equal confidences stand or fall together
    assert points.loc[("bad", 0.1), ["low", "high"]].isna().all(), (
        "six answers are of fewer than ten cases"
    )
    assert points.loc[("bad", 0.1), "missing"] == "no interval: fewer than 12 cases"
    assert points.loc[("bad", 1.0), ["low", "high"]].notna().all()


def test_few_right_or_wrong_answers_leave_no_curve():
    answers, confidence = tables(methods=("bad", "good"))
    found = risk_coverage_table(answers, confidence, ["bad", "good"], n_draws=10, min_per_class=40)
    assert found["method"].tolist() == ["bad", "good"] and found["value"].isna().all()
    assert set(found["missing"]) == {"fewer than 40 correct or wrong"}


def test_without_a_shared_row_there_is_no_curve():
    answers, confidence = tables(20, methods=("good", "bad"))
    first = confidence["method"].eq("good") & (confidence.index < 20)
    second = confidence["method"].eq("bad") & (confidence.index >= 60)
    confidence.loc[first | second, "confidence"] = NAN
    confidence.loc[3, "confidence"] = NAN
    found = risk_coverage_table(
        answers, confidence.query("index != 3"), ["good", "bad"], n_draws=10
    )
    assert found["value"].isna().all() and set(found["missing"]) == {"no row that all methods have"}
