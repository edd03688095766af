"""Brier's parts by scikit-learn and by hand, calibration on other cases, and their tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from each import each
from resampled import brier_decomposition, case_weights
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import GroupKFold

from studies.calibration import (
    recalibration_curves,
    reliability_table,
    risk_coverage_table,
)
from trustlab.metrics import brier
from trustlab.metrics.calibration import brier_parts_weighted, cross_fitted
from trustlab.metrics.selective import risk_at

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


@each("decimals", [1, 6])
def test_brier_parts_add_up_and_agree_with_scikit_learns_isotonic_fit(decimals):
    correct, confidence = scored(150, decimals=decimals)
    fit = IsotonicRegression().fit_transform(confidence, correct.astype(float))
    plain = brier(correct, np.full(150, correct.mean()))
    score, fitted = brier(correct, confidence), brier(correct, fit)
    parts = brier_decomposition(correct, confidence)
    assert parts == pytest.approx((score, score - fitted, plain - fitted, plain), abs=1e-12)


def test_a_weight_is_a_repetition():
    correct, confidence = scored(40, decimals=1)
    weights = case_weights(np.arange(40), n_draws=12)
    again = [brier_decomposition(np.repeat(correct, w), np.repeat(confidence, w)) for w in weights]
    found = brier_parts_weighted(correct, confidence, weights)
    np.testing.assert_allclose(found, [parts[1:] for parts in again], atol=1e-12)


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


# The tables


class Run:
    """A run of 30 cases at three levels.

    "p" a probability that promises too much, "s" a score, "gone" without a value.
    """

    def __init__(self, n: int = 30, method: str | None = None) -> None:
        self.correct, self.said = scored(3 * n, seed=4)
        ids = np.repeat([f"c{i:02d}" for i in range(n)], 3)
        keys = pd.DataFrame({"case_id": ids, "level": [1, 40, 100] * n, "dataset": "d"})
        keys = keys.assign(model="x")
        self.answers = keys.assign(answer="a", correct=self.correct, missing="")
        told = {"p": self.said, "s": 20 * self.said - 9, "gone": np.full(3 * n, NAN)}
        parts = [keys.assign(method=name, confidence=values) for name, values in told.items()]
        whole = pd.concat(parts, ignore_index=True).assign(bound="", missing="none")
        self.confidence = whole if method is None else whole[whole["method"] == method]


SCALES = {"p": "probability", "s": "score", "gone": "probability"}


@pytest.fixture(scope="module")
def run() -> Run:
    return Run()


def test_the_curve_is_the_isotonic_fit_with_a_band(run: Run):
    found = recalibration_curves(run.answers, run.confidence, SCALES, n_draws=200)
    assert set(found["method"]) == {"p", "gone"}
    mine = found[found["method"] == "p"]
    fit = IsotonicRegression().fit(run.said, run.correct.astype(float))
    np.testing.assert_allclose(mine["value"], fit.predict(mine["confidence"]))
    assert mine["confidence"].is_monotonic_increasing and len(mine) <= 60
    assert (mine["confidence"].min(), mine["confidence"].max()) == (run.said.min(), run.said.max())
    band = mine.dropna(subset="low")
    assert (band["low"] < band["high"]).all() and len(band) > 10
    assert mine.loc[mine["low"].isna(), "missing"].str.startswith("no interval").all()


# Reliability


def binned(rows: list[tuple], bins: int, scales: dict[str, str] | None = None) -> pd.DataFrame:
    """The bins of ``rows``: case, level, correct, and a confidence for each of ``scales``."""
    methods = scales or {"m": "probability"}
    table = pd.DataFrame(rows, columns=["case_id", "level", "correct", *methods])
    table = table.assign(dataset="d", model="x")
    keys = ["case_id", "dataset", "level", "model"]
    told = table.melt(keys, list(methods), "method", "confidence").assign(bound="", missing="")
    return reliability_table(table[[*keys, "correct"]], told, methods, bins=bins, n_draws=500)


def test_bins_hold_equal_numbers_of_answers_and_equal_confidences_share_one():
    values = [(0.1, 0), (0.2, 0), (0.3, 1), (0.6, 0), (0.7, 1), (0.9, 1)] * 4
    found = binned([(f"c{i}", 1, hit, p) for i, (p, hit) in enumerate(values)], 2)
    assert found[["bin", "n", "n_cases"]].to_numpy().tolist() == [[0, 12, 12], [1, 12, 12]]
    np.testing.assert_allclose(found["confidence"], [0.2, 2.2 / 3])
    np.testing.assert_allclose(found["value"], [1 / 3, 2 / 3])
    assert ((found["low"] <= found["value"]) & (found["value"] <= found["high"])).all()


# Risk and coverage

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
    reasons = found.set_index("method")["missing"]
    assert reasons["gone"] == "no confidence: none"
    assert reasons["half"] == "a value in 24 of 60 answers only: not compared"
    assert drawn.loc[drawn["low"].isna(), "missing"].str.startswith("no interval").all()
