"""Risk and coverage: by hand, by every order of equal confidences, and their table."""

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


def risks(correct, confidence) -> np.ndarray:
    """Risk after 1, 2, ... n answers, the mean over every order from the surest down."""
    n, found = len(confidence), []
    for order in permutations(range(n)):
        if all(confidence[a] >= confidence[b] for a, b in zip(order, order[1:], strict=False)):
            wrong = 1 - np.asarray(correct)[list(order)]
            found.append(np.cumsum(wrong) / np.arange(1, n + 1))
    return np.mean(found, axis=0)


def test_area_and_ratio_by_hand():
    # Risks 0, 0, 1/3, 1/2 of the right order, and 1, 1, 2/3, 1/2 of the wrong one.
    assert aurc([1, 1, 0, 0], [4, 3, 2, 1]) == pytest.approx((1 / 3 + 1 / 2) / 4)
    assert aurc([1, 1, 0, 0], [1, 2, 3, 4]) == pytest.approx((1 + 1 + 2 / 3 + 1 / 2) / 4)
    # Order right, wrong, right: risks 0, 1/2, 1/3; the best order has 0, 0, 1/3, any order 1/3
    # throughout: the share of the possible gain
    found = prediction_rejection_ratio([1, 0, 1], [3, 2, 1])
    assert found == pytest.approx((1 / 3 - (1 / 2 + 1 / 3) / 3) / (1 / 3 - 1 / 9))
    correct = np.array([1, 0, 1, 1, 0, 1, 1])
    assert prediction_rejection_ratio(correct, correct) == pytest.approx(1)
    assert prediction_rejection_ratio(correct, -correct) < 0


@each("seed", range(8))
def test_risk_and_area_are_means_over_every_order_of_equal_confidences(seed):
    rng = np.random.default_rng(seed)
    correct, confidence = np.append(rng.integers(0, 2, 4), [0, 1]), rng.integers(0, 3, 6)
    expected = risks(correct, confidence)
    assert aurc(correct, confidence) == pytest.approx(expected.mean())
    found = risk_at(correct, confidence, np.ones((1, 6), int), np.arange(1, 7) / 6)
    np.testing.assert_allclose(found[0], expected)


def test_a_weight_is_a_repetition():
    rng = np.random.default_rng(0)
    correct = rng.integers(0, 2, 30)
    confidence = np.floor((rng.random(30) + 0.4 * correct) * 4)
    weights = case_weights(np.arange(30), n_draws=10)
    areas, ratios = selective_weighted(correct, confidence, weights)
    again = [(np.repeat(correct, w), np.repeat(confidence, w)) for w in weights]
    np.testing.assert_allclose(areas, [aurc(c, s) for c, s in again])
    np.testing.assert_allclose(ratios, [prediction_rejection_ratio(c, s) for c, s in again])
    grid = [0.1, 0.55, 1.0]
    single = [risk_at(c, s, np.ones((1, 30), int), grid)[0] for c, s in again]
    np.testing.assert_allclose(risk_at(correct, confidence, weights, grid), single)


def test_a_weighting_that_leaves_one_class_or_nothing_is_missing_and_others_are_refused():
    areas, ratios = selective_weighted([1, 0], [2, 1], [[1, 1], [3, 0], [0, 0]])
    np.testing.assert_allclose(areas, [0.25, NAN, NAN])
    np.testing.assert_allclose(ratios, [1, NAN, NAN])
    for weights in ([[0.5, 1]], [[-1, 1]]):
        with pytest.raises(ValueError, match="received"):
            selective_weighted([1, 0], [0.5, 0.4], weights)
    for coverage in (0.0, 1.1):
        with pytest.raises(ValueError, match="received"):
            risk_at([1, 0], [0.5, 0.4], [[1, 1]], [coverage])


# The table

ALL = ("bad", "good", "flat", "gone", "half")


def tables(n: int = 30, methods=ALL) -> tuple[pd.DataFrame, pd.DataFrame]:
    """``n`` cases at two levels.

    "flat" is constant, "gone" has no value, "half" one in fewer than half of the answers.
    """
    rng = np.random.default_rng(5)
    correct = (rng.random(2 * n) < 0.6).astype(float)
    keys = pd.DataFrame({"case_id": np.repeat([f"c{i:02d}" for i in range(n)], 2)})
    keys = keys.assign(level=[1, 100] * n, dataset="d", model="x")
    said = {"good": 0.5 * correct + rng.random(2 * n), "bad": rng.random(2 * n)}
    said |= {"flat": np.full(2 * n, 0.5), "gone": np.full(2 * n, NAN)}
    said["half"] = np.where(np.arange(2 * n) < 0.8 * n, said["good"], NAN)
    said["good"] = np.where(np.arange(2 * n) == 3, NAN, said["good"])
    parts = [keys.assign(method=name, confidence=said[name]) for name in methods]
    confidence = pd.concat(parts, ignore_index=True).assign(bound="", missing="none")
    return keys.assign(answer="a", correct=correct, missing=""), confidence


def test_curves_stand_on_the_rows_that_all_compared_methods_have_beside_two_references():
    answers, confidence = tables()
    found = risk_coverage_table(answers, confidence, ALL, coverages=(0.25, 0.5, 1.0), n_draws=100)
    assert list(dict.fromkeys(found["method"])) == ["oracle", "any order", *ALL]
    assert found.groupby("method")["role"].first()["oracle"] == "reference"
    drawn = found.dropna(subset="value")
    assert (drawn[["n_shared", "n_missing"]] == [59, 1]).all(axis=None)
    shared = confidence.query("method == 'good'")["confidence"].notna().to_numpy()
    right = answers["correct"].to_numpy()[shared]
    rate = 1 - right.mean()
    curves = drawn.set_index(["method", "coverage"])["value"]
    assert curves["any order"].tolist() == pytest.approx([rate] * 3) == curves["flat"].tolist()
    assert curves["oracle"].tolist() == pytest.approx([0, max(0, 1 - right.mean() / 0.5), rate])
    said = confidence.query("method == 'bad'")["confidence"].to_numpy()[shared]
    expected = risk_at(right, said, np.ones((1, 59), int), [0.25, 0.5, 1.0])[0]
    assert curves["bad"].tolist() == pytest.approx(expected)
    # the same draws for all: where all answers are given, one interval
    at_all = drawn[drawn["coverage"] == 1].groupby("method")[["low", "high"]].first()
    draws = case_weights(answers["case_id"], 100, 0)[:, shared]
    expected = np.quantile(draws @ (1 - right) / draws.sum(axis=1), [0.025, 0.975])
    np.testing.assert_allclose(at_all, [expected] * len(at_all))
    reasons = found.set_index("method")["missing"]
    assert reasons["gone"] == "no confidence: none"
    assert reasons["half"] == "a value in 24 of 60 answers only: not compared"
    assert drawn.loc[drawn["low"].isna(), "missing"].str.startswith("no interval").all()


def test_each_point_of_a_curve_counts_the_answers_given_there():
    answers, confidence = tables()
    asked = ["flat", "gone", "bad"]
    found = risk_coverage_table(answers, confidence, asked, coverages=(0.1, 0.5, 1.0), n_draws=200)
    assert list(dict.fromkeys(found["method"])) == ["oracle", "any order", "flat", "bad", "gone"]
    points = found.set_index(["method", "coverage"])
    assert points.loc["bad", "n"].tolist() == [6, 30, 60]
    assert points.loc["flat", "n"].tolist() == [60] * 3  # equal confidences stand or fall together
    few, all_given = points.loc[("bad", 0.1)], points.loc[("bad", 1.0)]
    assert few[["low", "high"]].isna().all() and all_given[["low", "high"]].notna().all()
    assert few["missing"] == "no interval: fewer than 12 cases"


def test_few_right_or_wrong_answers_or_no_shared_row_leave_no_curve():
    answers, confidence = tables(methods=("bad", "good"))
    found = risk_coverage_table(answers, confidence, ["bad", "good"], n_draws=10, min_per_class=40)
    assert found["method"].tolist() == ["bad", "good"] and found["value"].isna().all()
    assert set(found["missing"]) == {"fewer than 40 correct or wrong"}
    answers, confidence = tables(20, methods=("good", "bad"))
    confidence.loc[[*range(20), *range(60, 80)], "confidence"] = NAN
    told = confidence.query("index != 3")
    found = risk_coverage_table(answers, told, ["good", "bad"], n_draws=10)
    assert found["value"].isna().all() and set(found["missing"]) == {"no row that all methods have"}
