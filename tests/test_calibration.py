"""Brier's parts by scikit-learn and by hand, calibration on other cases, and their tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from each import each
from resampled import brier_decomposition, case_weights
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import GroupKFold

from studies.calibration import calibration_table, recalibration_curves, reliability_table
from trustlab.measures import metrics_table
from trustlab.metrics import auroc, brier, ece
from trustlab.metrics.calibration import brier_parts_weighted, cross_fitted

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


def test_the_folds_follow_from_cases_and_seed_and_not_from_the_rows_order():
    correct, confidence = scored(60)
    cases = np.repeat([f"case {i}" for i in range(20)], 3)
    order = np.random.default_rng(0).permutation(60)
    found = cross_fitted(correct, confidence, cases)
    shuffled = cross_fitted(correct[order], confidence[order], cases[order])
    np.testing.assert_allclose(shuffled, found[order])
    assert (cross_fitted(correct, confidence, cases, seed=1) != found).any()


def test_a_score_on_any_scale_becomes_a_probability_that_is_calibrated():
    correct, confidence = scored(600)
    found = cross_fitted(correct, 50 * confidence - 7, np.arange(600))
    assert ((found >= 0) & (found <= 1)).all()
    before, after = (brier_decomposition(correct, c) for c in (confidence, found))
    assert after.miscalibration < 0.01 < before.miscalibration
    assert auroc(correct, found) > auroc(correct, confidence) - 0.03


def test_too_few_cases_or_one_class_outside_a_fold_give_no_probability_at_all():
    assert np.isnan(cross_fitted([1, 0, 1, 0], [0.1, 0.2, 0.3, 0.4], [1, 2, 3, 3], n_folds=4)).all()
    # The one wrong answer is left out of its own fold's training part.
    assert np.isnan(cross_fitted([1] * 9 + [0], np.arange(10) / 10, np.arange(10))).all()
    for arguments in (([1, 0], [0.5, 0.4], [1]), ([1], [0.5], [1], 1)):
        with pytest.raises(ValueError, match=r"received|allowed"):
            cross_fitted(*arguments)


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


@pytest.fixture(scope="module")
def calibrated(run: Run) -> pd.DataFrame:
    return calibration_table(run.answers, run.confidence, SCALES, n_draws=300)


def test_the_table_has_a_row_for_each_method_way_and_measure(calibrated: pd.DataFrame):
    ways = calibrated.groupby("method", sort=False)["how"].unique()
    assert list(ways["p"]) == ["as given", "isotonic"] and list(ways["s"]) == ["isotonic"]
    assert not calibrated.duplicated(["method", "how", "metric"]).any()
    counts, gone = ["n", "n_cases", "n_missing"], calibrated["method"].eq("gone")
    assert (calibrated.loc[~gone, counts] == [90, 30, 0]).all(axis=None)
    assert (calibrated.loc[gone, counts] == [0, 0, 90]).all(axis=None)
    assert calibrated.loc[gone, "value"].isna().all()
    assert set(calibrated.loc[gone, "missing"]) == {"no confidence: none"}
    known = calibrated[~gone]
    assert ((known["low"] <= known["value"]) & (known["value"] <= known["high"])).all()
    assert (known["low"] >= 0).all() and (known["low"] < known["high"]).all()


def test_values_are_those_of_the_metrics_table_and_of_cross_fitted_probabilities(
    run: Run, calibrated: pd.DataFrame
):
    mine = calibrated.query("method == 'p' and how == 'as given'").set_index("metric")
    usual = metrics_table(run, n_draws=300, scales=SCALES)
    usual = usual.query("method == 'p' and level == 'pooled'").set_index("metric")
    for name, columns in (("brier", ["value", "low", "high"]), ("ece", ["value"])):
        assert mine.loc[name, columns].tolist() == pytest.approx(usual.loc[name, columns].tolist())
    prob = cross_fitted(run.correct, 20 * run.said - 9, run.answers["case_id"].to_numpy())
    mine = calibrated.query("method == 's' and how == 'isotonic'").set_index("metric")["value"]
    assert mine["ece"] == pytest.approx(ece(run.correct, prob))
    parts = brier_decomposition(run.correct, prob)
    assert mine[["brier", *PARTS]].tolist() == pytest.approx(list(parts))


def test_an_interval_of_a_part_that_cannot_be_negative_ends_at_nought(run: Run):
    noise = run.confidence.query("method == 'p'").assign(
        confidence=np.random.default_rng(1).random(len(run.said))
    )
    found = calibration_table(run.answers, noise, SCALES, n_draws=300).set_index(["how", "metric"])
    line = found.loc[("as given", "discrimination")]
    assert line["low"] == 0 < line["value"]
    with pytest.raises(ValueError, match="received"):  # a probability outside 0 to 1
        calibration_table(run.answers, run.confidence, {"s": "probability"}, n_draws=10)


def test_few_wrong_answers_withhold_what_needs_both_classes():
    few = Run(method="p")
    few.answers["correct"] = 1
    few.answers.loc[:3, "correct"] = 0
    found = calibration_table(few.answers, few.confidence, SCALES, n_draws=50)
    plain = found["how"].eq("as given") & found["metric"].isin(["brier", "ece"])
    assert (found.loc[plain, "value"] > 0).all() and found.loc[~plain, "value"].isna().all()
    assert set(found.loc[~plain, "missing"]) == {"fewer than 10 correct or wrong"}


@each(
    ("n", "correct", "why"),
    [
        (4, None, "fewer than 5 cases to calibrate on"),
        (6, [0, 0, 1] + [1] * 15, "one class only outside a fold"),
    ],
)
def test_one_class_outside_a_fold_and_too_few_cases_are_told_apart(n, correct, why):
    one = Run(n, "s")
    answers = one.answers if correct is None else one.answers.assign(correct=correct)
    found = calibration_table(answers, one.confidence, SCALES, n_draws=20, min_per_class=1)
    assert set(found["missing"]) == {why}


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


def test_a_curve_needs_both_classes_and_twelve_cases_for_its_band():
    few = Run(9, "p")
    found = recalibration_curves(few.answers, few.confidence, SCALES, n_draws=20)
    assert found["value"].notna().all() and found["low"].isna().all()
    assert set(found["missing"]) == {"no interval: fewer than 12 cases"}
    alone = few.answers.assign(correct=1)
    (row,) = recalibration_curves(alone, few.confidence, SCALES, n_draws=20).to_dict("records")
    assert np.isnan(row["value"]) and row["missing"] == "right answers alone, or wrong ones alone"


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
    found = binned([(f"c{i}", 1, i % 2, p) for i, p in enumerate([0.5] * 6 + [0.9] * 2)], 4)
    # Mean ranks 3.5 and 7.5 of 8 lie in the second and the last of four bins.
    columns = ["bin", "confidence", "value", "n"]
    assert found[columns].to_numpy().tolist() == [[1, 0.5, 0.5, 6], [3, 0.9, 0.5, 2]]
    found = binned([(f"c{i}", 1, i % 2, 0.1 + 0.05 * i) for i in range(18)], 2)
    assert found["n"].tolist() == [9, 9] and found[["low", "high"]].isna().all(axis=None)
    assert found["missing"].tolist() == ["no interval: fewer than 12 cases"] * 2


def test_failed_answers_and_scores_have_no_bin_and_the_interval_resamples_cases():
    rows = [("a", 1, 0, 0.3, -3.0), ("b", 1, NAN, 0.9, -2.0), ("c", 1, 1, 0.6, -1.0)]
    found = binned(rows, 1, {"p": "probability", "s": "score"})
    expected = [["p", pytest.approx(0.45), 0.5, 2]]
    assert found[["method", "confidence", "value", "n"]].to_numpy().tolist() == expected
    # Six cases are always right and six always wrong: the number right in a draw is binomial (12,
    # 1/2), 95 % of it in 3 to 9.
    levels = (1, 20, 40, 60, 80, 100)
    found = binned([(c, level, c in "abcdef", 0.5) for c in "abcdefghijkl" for level in levels], 1)
    np.testing.assert_allclose(found[["value", "low", "high"]], [[0.5, 0.25, 0.75]])
    with pytest.raises(pd.errors.MergeError):
        binned([rows[0][:4]] * 2, 1)
