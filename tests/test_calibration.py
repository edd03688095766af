"""Brier's parts by scikit-learn and by hand, calibration on other cases, and their tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from each import each
from resampled import brier_decomposition, case_weights
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import GroupKFold

from studies.calibration import calibration_table, recalibration_curves
from trustlab.measures import metrics_table
from trustlab.metrics import auroc, brier, ece
from trustlab.metrics.calibration import brier_parts_weighted, cross_fitted
from trustlab.metrics.estimate import without_excess

pytestmark = pytest.mark.usefixtures("every_interval")


NAN = float("nan")
PARTS = ("miscalibration", "discrimination", "uncertainty")


def scored(n: int, seed: int = 0, decimals: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Answers that are right more often the surer, though less often than the confidence says."""
    rng = np.random.default_rng(seed)
    confidence = np.round(rng.random(n), decimals)
    return (rng.random(n) < confidence**2).astype(int), confidence


# The parts of a Brier score


def test_brier_parts_by_hand():
    # Said 0.2 (one of two right), 0.6 (none of one), 0.9 (right): the rising fit pools the first
    # two: 1/3, 1/3, 1.
    parts = brier_decomposition([1, 0, 0, 1], [0.2, 0.2, 0.6, 0.9])
    score, recalibrated, plain = (
        (0.64 + 0.04 + 0.36 + 0.01) / 4,
        (4 / 9 + 1 / 9 + 1 / 9 + 0) / 4,
        1 / 4,
    )
    assert parts.brier == pytest.approx(score)
    assert parts.miscalibration == pytest.approx(score - recalibrated)
    assert parts.discrimination == pytest.approx(plain - recalibrated)
    assert parts.uncertainty == pytest.approx(plain)


@each("decimals", [1, 6])
def test_brier_parts_add_up_and_agree_with_scikit_learns_isotonic_fit(decimals):
    correct, confidence = scored(150, decimals=decimals)
    parts = brier_decomposition(correct, confidence)
    fit = IsotonicRegression().fit_transform(confidence, correct.astype(float))
    share = np.full(150, correct.mean())
    assert parts.brier == pytest.approx(brier(correct, confidence), abs=1e-15)
    assert parts.miscalibration == pytest.approx(
        brier(correct, confidence) - brier(correct, fit), abs=1e-12
    )
    assert parts.discrimination == pytest.approx(
        brier(correct, share) - brier(correct, fit), abs=1e-12
    )
    assert parts.brier == pytest.approx(
        parts.miscalibration - parts.discrimination + parts.uncertainty, abs=1e-12
    )


def test_a_weight_is_a_repetition():
    correct, confidence = scored(40, decimals=1)
    weights = case_weights(np.arange(40), n_draws=12)
    repeated = [
        brier_decomposition(np.repeat(correct, w), np.repeat(confidence, w)) for w in weights
    ]
    expected = [[getattr(parts, name) for name in PARTS] for parts in repeated]
    np.testing.assert_allclose(
        brier_parts_weighted(correct, confidence, weights), expected, atol=1e-12
    )


def test_a_calibrated_confidence_has_no_miscalibration_and_a_constant_one_no_discrimination():
    correct = [0, 0, 0, 1, 1, 1, 1, 0]
    exact = brier_decomposition(correct, [0.25] * 4 + [0.75] * 4)
    assert (exact.miscalibration, exact.discrimination) == (
        pytest.approx(0, abs=1e-15),
        pytest.approx(1 / 16),
    )
    flat = brier_decomposition(correct, [0.9] * 8)
    assert (flat.miscalibration, flat.discrimination) == (
        pytest.approx(0.16),
        pytest.approx(0, abs=1e-15),
    )


# Calibration on other cases


def test_every_answer_is_calibrated_on_the_other_folds_of_cases():
    correct, confidence = scored(60)
    cases = np.repeat(np.arange(20), 3)
    found = cross_fitted(correct, confidence, cases, n_folds=4, seed=7)
    for train, test in GroupKFold(4, shuffle=True, random_state=7).split(confidence, groups=cases):
        assert not set(cases[train]) & set(cases[test])
        np.testing.assert_allclose(
            found[test],
            IsotonicRegression(out_of_bounds="clip")
            .fit(confidence[train], correct[train].astype(float))
            .predict(confidence[test]),
        )


def test_an_answer_has_no_say_in_its_own_probability_nor_have_others_of_its_case():
    correct, confidence = scored(60)
    cases = np.repeat(np.arange(20), 3)
    turned = correct.copy()
    turned[:3] = 1 - turned[:3]
    before, after = (cross_fitted(c, confidence, cases) for c in (correct, turned))
    np.testing.assert_array_equal(before[:3], after[:3])
    assert (before != after).any()


def test_the_folds_follow_from_cases_and_seed_and_not_from_the_rows_order():
    correct, confidence = scored(60)
    cases = np.repeat([f"case {i}" for i in range(20)], 3)
    order = np.random.default_rng(0).permutation(60)
    found = cross_fitted(correct, confidence, cases)
    np.testing.assert_allclose(
        cross_fitted(correct[order], confidence[order], cases[order]), found[order]
    )
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
    assert np.isnan(cross_fitted([], [], [])).all()


@each(
    "arguments",
    [
        ([1, 0], [0.5, 0.4], [1]),
        ([1, 0], [0.5, np.inf], [1, 2]),
        ([1], [0.5], [1], 1),
    ],
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(ValueError, match=r"received|allowed"):
        cross_fitted(*arguments)


# The tables


class Run:
    """A run of 30 cases at three levels.

    "p" a probability that promises too much, "s" a score, "gone" without a value.
    """

    def __init__(self, n: int = 30) -> None:
        correct, confidence = scored(3 * n, seed=4)
        self.correct, self.said = correct, confidence
        keys = pd.DataFrame(
            {"case_id": np.repeat([f"c{i:02d}" for i in range(n)], 3), "level": [1, 40, 100] * n}
        )
        keys = keys.assign(dataset="d", model="x")
        self.answers = keys.assign(answer="a", correct=correct, missing="")
        told = {"p": confidence, "s": 20 * confidence - 9, "gone": np.full(3 * n, NAN)}
        parts = [
            keys.assign(method=name, confidence=values, bound="", missing="none")
            for name, values in told.items()
        ]
        self.confidence = pd.concat(parts, ignore_index=True)


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
    assert (calibrated.query("method != 'gone'")[["n", "n_cases", "n_missing"]] == [90, 30, 0]).all(
        axis=None
    )


def test_as_given_is_what_the_metrics_table_says(run: Run, calibrated: pd.DataFrame):
    mine = calibrated.query("method == 'p' and how == 'as given'").set_index("metric")
    usual = (
        metrics_table(run, n_draws=300, scales=SCALES)
        .query("method == 'p' and level == 'pooled'")
        .set_index("metric")
    )
    assert mine.loc["brier", "value"] == pytest.approx(usual.loc["brier", "value"])
    assert mine.loc["ece", "value"] == pytest.approx(usual.loc["ece", "value"])
    assert mine.loc["brier", ["low", "high"]].tolist() == pytest.approx(
        usual.loc["brier", ["low", "high"]].tolist()
    )


def test_calibrated_values_are_those_of_the_cross_fitted_probabilities(
    run: Run, calibrated: pd.DataFrame
):
    cases = run.answers["case_id"].to_numpy()
    prob = cross_fitted(run.correct, 20 * run.said - 9, cases)
    mine = calibrated[calibrated["method"].eq("s") & calibrated["how"].eq("isotonic")]
    mine = mine.set_index("metric")["value"]
    parts = brier_decomposition(run.correct, prob)
    assert mine["ece"] == pytest.approx(ece(run.correct, prob))
    for name in ("brier", *PARTS):
        assert mine[name] == pytest.approx(getattr(parts, name))


def test_intervals_hold_their_value_and_never_go_below_nought(calibrated: pd.DataFrame):
    known = calibrated.dropna(subset="value")
    assert ((known["low"] <= known["value"]) & (known["value"] <= known["high"])).all()
    assert (known["low"] >= 0).all() and (known["low"] < known["high"]).all()


def test_an_interval_of_a_part_that_cannot_be_negative_ends_at_nought(run: Run):
    noise = run.confidence.query("method == 'p'").assign(
        confidence=np.random.default_rng(1).random(len(run.said))
    )
    found = calibration_table(run.answers, noise, SCALES, n_draws=300).set_index(["how", "metric"])
    assert (
        found.loc[("as given", "discrimination"), "low"]
        == 0
        < found.loc[("as given", "discrimination"), "value"]
    )


def test_a_method_without_values_says_why_in_every_row(calibrated: pd.DataFrame):
    gone = calibrated.query("method == 'gone'")
    assert gone["value"].isna().all() and set(gone["missing"]) == {"no confidence: none"}
    assert (gone[["n", "n_missing"]] == [0, 90]).all(axis=None)


def test_few_wrong_answers_withhold_what_needs_both_classes():
    few = Run()
    few.answers["correct"] = 1
    few.answers.loc[:3, "correct"] = 0
    found = calibration_table(
        few.answers, few.confidence.query("method == 'p'"), SCALES, n_draws=50
    ).set_index(["how", "metric"])
    assert (
        found.loc[("as given", "brier"), "value"] > 0
        and found.loc[("as given", "ece"), "value"] > 0
    )
    withheld = found.drop(index=[("as given", "brier"), ("as given", "ece")])
    assert withheld["value"].isna().all() and set(withheld["missing"]) == {
        "fewer than 10 correct or wrong"
    }


def test_one_class_outside_a_fold_and_too_few_cases_are_told_apart():
    one = Run(4)
    found = calibration_table(
        one.answers, one.confidence.query("method == 's'"), SCALES, n_draws=20, min_per_class=1
    )
    assert set(found["missing"]) == {"fewer than 5 cases to calibrate on"}
    one = Run(6)
    one.answers["correct"] = [0, 0, 1] + [1] * 15
    found = calibration_table(
        one.answers, one.confidence.query("method == 's'"), SCALES, n_draws=20, min_per_class=1
    )
    assert set(found["missing"]) == {"one class only outside a fold"}


def test_a_probability_outside_0_to_1_is_refused(run: Run):
    with pytest.raises(ValueError, match="received"):
        calibration_table(run.answers, run.confidence, {"s": "probability"}, n_draws=10)


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


def test_a_curve_needs_both_classes_and_ten_cases_for_its_band():
    few = Run(9)
    found = recalibration_curves(
        few.answers, few.confidence.query("method == 'p'"), SCALES, n_draws=20
    )
    assert found["value"].notna().all() and found["low"].isna().all()
    assert set(found["missing"]) == {"no interval: fewer than 12 cases"}
    few.answers["correct"] = 1
    (row,) = recalibration_curves(
        few.answers, few.confidence.query("method == 'p'"), SCALES, n_draws=20
    ).to_dict("records")
    assert np.isnan(row["value"]) and row["missing"] == "right answers alone, or wrong ones alone"


def test_the_mean_excess_of_draws_is_taken_off_down_to_nothing():
    np.testing.assert_allclose(
        without_excess([0.25, 0.5, 0.75, float("nan")], 0.125), [0, 0.125, 0.375, float("nan")]
    )
    np.testing.assert_allclose(without_excess([0.25, 0.75], 0.5), [0.25, 0.75])  # no excess
    assert np.isnan(without_excess([float("nan")], 0.5)).all()
