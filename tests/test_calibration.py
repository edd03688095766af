"""Brier's parts by scikit-learn and by hand, calibration on other cases, and their tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from each import each
from resampled import brier_decomposition
from saying import says
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import GroupKFold

from studies.calibration import (
    calibration_table,
    recalibration_curves,
    reliability_table,
    risk_coverage_table,
)
from trustlab.metrics import brier, ece
from trustlab.metrics.calibration import cross_fitted
from trustlab.metrics.intervals import agresti_coull
from trustlab.metrics.selective import risk_at
from trustlab.runs.measures import metrics_table

pytestmark = pytest.mark.usefixtures("every_interval")
NAN = float("nan")
PARTS = ("miscalibration", "discrimination", "uncertainty")


def scored(n: int, seed: int = 0, decimals: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Answers that are right more often the surer, though less often than the confidence says."""
    rng = np.random.default_rng(seed)
    confidence = np.round(rng.random(n), decimals)
    return (rng.random(n) < confidence**2).astype(int), confidence


def test_brier_parts_by_hand():
    # Said 0.2 (one of two right), 0.6 (none of one), 0.9 (right): the rising fit pools the first
    # two: 1/3, 1/3, 1.
    parts = brier_decomposition([1, 0, 0, 1], [0.2, 0.2, 0.6, 0.9])
    score, fitted = (0.64 + 0.04 + 0.36 + 0.01) / 4, (4 / 9 + 1 / 9 + 1 / 9 + 0) / 4
    assert parts == pytest.approx((score, score - fitted, 1 / 4 - fitted, 1 / 4))
    correct = [0, 0, 0, 1, 1, 1, 1, 0]
    calibrated = brier_decomposition(correct, [0.25] * 4 + [0.75] * 4)
    assert calibrated[1:3] == pytest.approx((0, 1 / 16), abs=1e-15)
    constant = brier_decomposition(correct, [0.9] * 8)
    assert constant[1:3] == pytest.approx((0.16, 0), abs=1e-15)


@each("decimals", [1, 6])
def test_brier_parts_add_up_and_agree_with_scikit_learns_isotonic_fit(decimals):
    correct, confidence = scored(150, decimals=decimals)
    fit = IsotonicRegression().fit_transform(confidence, correct.astype(float))
    plain = brier(correct, np.full(150, correct.mean()))
    score, fitted = brier(correct, confidence), brier(correct, fit)
    parts = brier_decomposition(correct, confidence)
    assert parts == pytest.approx((score, score - fitted, plain - fitted, plain), abs=1e-12)


def test_every_answer_is_calibrated_on_the_other_folds_of_cases():
    correct, confidence = scored(60)
    cases = np.repeat(np.arange(20), 3)
    found = cross_fitted(correct, confidence, cases, n_folds=4, seed=7)
    for train, test in GroupKFold(4, shuffle=True, random_state=7).split(confidence, groups=cases):
        fit = IsotonicRegression(out_of_bounds="clip")
        fit.fit(confidence[train], correct[train].astype(float))
        np.testing.assert_allclose(found[test], fit.predict(confidence[test]))
    turned = correct.copy()  # an answer has no say in the probabilities of its own case
    turned[:3] = 1 - turned[:3]
    before, after = (cross_fitted(c, confidence, cases) for c in (correct, turned))
    np.testing.assert_array_equal(before[:3], after[:3])
    assert (before != after).any()


def test_too_few_cases_or_one_class_outside_a_fold_give_no_probability_at_all():
    assert np.isnan(cross_fitted([1, 0, 1, 0], [0.1, 0.2, 0.3, 0.4], [1, 2, 3, 3], n_folds=4)).all()
    # The one wrong answer is left out of its own fold's training part.
    assert np.isnan(cross_fitted([1] * 9 + [0], np.arange(10) / 10, np.arange(10))).all()
    for arguments in (([1, 0], [0.5, 0.4], [1]), ([1], [0.5], [1], 1)):
        with pytest.raises(ValueError, match=r"received|allowed"):
            cross_fitted(*arguments)


class Run:
    """30 cases at three levels: "p" promises too much, "s" is a score, "gone" has no value."""

    def __init__(self) -> None:
        n = 30
        self.correct, self.said = scored(3 * n, seed=4)
        ids = np.repeat([f"c{i:02d}" for i in range(n)], 3)
        keys = pd.DataFrame({"case_id": ids, "level": [1, 40, 100] * n, "dataset": "d"})
        keys = keys.assign(model="x")
        self.answers = keys.assign(answer="a", correct=self.correct, missing="")
        told = {"p": self.said, "s": 20 * self.said - 9, "gone": np.full(3 * n, NAN)}
        parts = [keys.assign(method=name, confidence=values) for name, values in told.items()]
        self.confidence = pd.concat(parts, ignore_index=True).assign(bound="", missing="none")


SCALES = {"p": "probability", "s": "score", "gone": "probability"}


@pytest.fixture(scope="module")
def run() -> Run:
    return Run()


@pytest.fixture(scope="module")
def calibrated(run: Run) -> pd.DataFrame:
    return calibration_table(run.answers, run.confidence, SCALES)


def test_values_are_those_of_the_metrics_table_and_of_cross_fitted_probabilities(
    run: Run, calibrated: pd.DataFrame
):
    mine = calibrated.query("method == 'p' and how == 'as given'").set_index("metric")
    usual = metrics_table(run, scales=SCALES)
    usual = usual.query("method == 'p' and level == 'pooled'").set_index("metric")
    for name, columns in (("brier", ["value", "low", "high"]), ("ece", ["value"])):
        assert mine.loc[name, columns].tolist() == pytest.approx(usual.loc[name, columns].tolist())
    prob = cross_fitted(run.correct, 20 * run.said - 9, run.answers["case_id"].to_numpy())
    mine = calibrated.query("method == 's' and how == 'isotonic'").set_index("metric")["value"]
    assert mine["ece"] == pytest.approx(ece(run.correct, prob))
    parts = brier_decomposition(run.correct, prob)
    assert mine[["brier", *PARTS]].tolist() == pytest.approx(list(parts))


def test_the_curve_is_the_isotonic_fit_with_a_band(run: Run):
    found = recalibration_curves(run.answers, run.confidence, SCALES)
    assert set(found["method"]) == {"p", "gone"}
    mine = found[found["method"] == "p"]
    fit = IsotonicRegression().fit(run.said, run.correct.astype(float))
    np.testing.assert_allclose(mine["value"], fit.predict(mine["confidence"]))
    assert mine["confidence"].is_monotonic_increasing and len(mine) <= 60
    assert (mine["confidence"].min(), mine["confidence"].max()) == (run.said.min(), run.said.max())
    band = mine.dropna(subset="low")
    assert (band["low"] < band["high"]).all() and len(band) > 10
    assert mine.loc[mine["low"].isna(), "missing"].str.startswith("no interval").all()


def binned(rows: list[tuple], bins: int) -> pd.DataFrame:
    """The bins of ``rows``: case, level, correct, confidence."""
    table = pd.DataFrame(rows, columns=["case_id", "level", "correct", "confidence"])
    table = table.assign(dataset="d", model="x", answer="a", method="m", bound="", missing="")
    told = table.drop(columns=["answer", "correct"])
    return reliability_table(table, told, {"m": "probability"}, bins=bins)


def test_bins_hold_equal_numbers_of_answers_and_equal_confidences_share_one():
    values = [(0.1, 0), (0.2, 0), (0.3, 1), (0.6, 0), (0.7, 1), (0.9, 1)] * 4
    found = binned([(f"c{i}", 1, hit, p) for i, (p, hit) in enumerate(values)], 2)
    assert found[["bin", "n", "n_cases"]].to_numpy().tolist() == [[0, 12, 12], [1, 12, 12]]
    np.testing.assert_allclose(found["confidence"], [0.2, 2.2 / 3])
    np.testing.assert_allclose(found["value"], [1 / 3, 2 / 3])
    assert ((found["low"] <= found["value"]) & (found["value"] <= found["high"])).all()
    found = binned([(f"c{i}", 1, i % 2, p) for i, p in enumerate([0.5] * 6 + [0.9] * 2)], 4)
    # Mean ranks 3.5 and 7.5 of 8 lie in the second and the last of four bins.
    columns = ["bin", "confidence", "value", "n"]
    assert found[columns].to_numpy().tolist() == [[1, 0.5, 0.5, 6], [3, 0.9, 0.5, 2]]
    found = binned([(f"c{i}", 1, i % 2, 0.1 + 0.05 * i) for i in range(18)], 2)
    assert found["n"].tolist() == [9, 9] and found[["low", "high"]].isna().all(axis=None)
    assert len(found) == 2 and {says(why, "interval", 12) for why in found["missing"]} == {True}


ALL = ("bad", "good", "flat", "gone", "half")


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """30 cases at two levels: "flat" is constant, "gone" has no value, "half" four fifths."""
    rng, n = np.random.default_rng(5), 30
    correct = (rng.random(2 * n) < 0.6).astype(float)
    keys = pd.DataFrame({"case_id": np.repeat([f"c{i:02d}" for i in range(n)], 2)})
    keys = keys.assign(level=[1, 100] * n, dataset="d", model="x")
    said = {"good": 0.5 * correct + rng.random(2 * n), "bad": rng.random(2 * n)}
    said |= {"flat": np.full(2 * n, 0.5), "gone": np.full(2 * n, NAN)}
    said["half"] = np.where(np.arange(2 * n) < 1.6 * n, said["good"], NAN)
    said["good"] = np.where(np.arange(2 * n) == 3, NAN, said["good"])
    parts = [keys.assign(method=name, confidence=said[name]) for name in ALL]
    confidence = pd.concat(parts, ignore_index=True).assign(bound="", missing="none")
    return keys.assign(answer="a", correct=correct, missing=""), confidence


def test_curves_stand_on_the_rows_that_all_compared_methods_have_beside_two_references():
    answers, confidence = tables()
    found = risk_coverage_table(answers, confidence, ALL, coverages=(0.25, 0.5, 1.0))
    assert list(dict.fromkeys(found["method"])) == ["oracle", "any order", *ALL]
    assert found.groupby("method")["role"].first()["oracle"] == "reference"
    drawn = found.dropna(subset="value")
    own = drawn["own_rows"].eq(True)
    assert set(drawn.loc[own, "method"]) == {"half"}
    assert (drawn.loc[own, ["n_shared", "n_missing"]] == [48, 12]).all(axis=None)
    drawn = drawn[~own]
    assert (drawn[["n_shared", "n_missing"]] == [59, 1]).all(axis=None)
    shared = confidence.query("method == 'good'")["confidence"].notna().to_numpy()
    right = answers["correct"].to_numpy()[shared]
    rate = 1 - right.mean()
    curves = drawn.set_index(["method", "coverage"])["value"]
    assert curves["any order"].tolist() == pytest.approx([rate] * 3) == curves["flat"].tolist()
    assert curves["oracle"].tolist() == pytest.approx([0, max(0, 1 - right.mean() / 0.5), rate])
    said = confidence.query("method == 'bad'")["confidence"].to_numpy()[shared]
    expected = risk_at(right, said, [0.25, 0.5, 1.0])
    assert curves["bad"].tolist() == pytest.approx(expected)
    # where all answers are given, one interval, with as many answers as the cases are worth
    at_all = drawn[drawn["coverage"] == 1].groupby("method")[["low", "high"]].first()
    expected = agresti_coull(rate, 59**2 / (29 * 4 + 1), 30)
    np.testing.assert_allclose(at_all, [expected] * len(at_all))
    reasons = found.set_index("method")["missing"]
    assert reasons["gone"] == "no confidence: none"
    assert drawn.loc[drawn["low"].isna(), "missing"].str.startswith("no interval").all()
