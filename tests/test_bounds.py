"""Best and worst case of what is missing: the ends of every way of filling it in."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from each import each
from sklearn.metrics import average_precision_score, roc_auc_score

from studies.benchmark import NO_ENDS, ONLY_RANGE, missingness_table
from trustlab.metrics import auprc, auroc, brier
from trustlab.metrics.missing_bounds import (
    accuracy_bounds,
    auprc_bounds,
    auroc_bounds,
    brier_bounds,
    mean_confidence_bounds,
)

NAN = float("nan")
RANKED = {"auroc": (auroc_bounds, roc_auc_score), "auprc": (auprc_bounds, average_precision_score)}
PLACES = (-2.0, -1.0, 0.0, 0.1, 0.2, 0.5, 0.6, 0.7, 1.0, 2.0, 3.0)
"""Below, on, between and above the confidences 0, 0.5 and 1, two places a gap, so that two missing
ones need not tie."""


def filled_in(correct: np.ndarray, confidence: np.ndarray, places=PLACES):
    """Every way of filling in what is missing.

    Unknown answers right or wrong, confidences at each of ``places``.
    """
    unknown = np.isnan(correct)
    missing = np.isnan(confidence) | unknown
    for said in product((0, 1), repeat=int(unknown.sum())):
        for placed in product(places, repeat=int(missing.sum())):
            right, sure = correct.copy(), confidence.copy()
            right[unknown], sure[missing] = said, placed
            yield right, sure


def tiny(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two to six answers, one or two confidences missing, some of unknown correctness."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    correct, confidence = rng.integers(0, 2, n).astype(float), rng.integers(0, 3, n) / 2
    lost = rng.permutation(n)[: rng.integers(1, 3)]
    confidence[lost] = np.nan
    correct[lost[rng.random(len(lost)) < 0.4]] = np.nan
    return correct, confidence


def by_hand(metric: str, right: np.ndarray, sure: np.ndarray) -> float:
    """AUROC and average precision by their definitions.

    Scikit-learn agrees (below) but takes a thousand times as long.
    """
    if metric == "auroc":
        gaps = sure[right == 1][:, None] - sure[right == 0]
        return float(np.mean((gaps > 0) + (gaps == 0) / 2))
    at_least = sure[right == 1][:, None] <= sure
    return float(np.mean((at_least @ right) / at_least.sum(axis=1)))


@each("metric", RANKED)
def test_the_definitions_tried_here_are_scikit_learns(metric):
    rng = np.random.default_rng(1)
    for _ in range(20):
        right, sure = np.append(rng.integers(0, 2, 8), [0, 1]), rng.integers(0, 4, 10).astype(float)
        assert by_hand(metric, right, sure) == pytest.approx(RANKED[metric][1](right, sure))


@each("metric", RANKED)
def test_no_way_of_filling_in_passes_the_ends_and_some_way_reaches_each(metric):
    seen = 0
    for seed in range(120):
        correct, confidence = tiny(seed)
        values = [
            by_hand(metric, r, s) for r, s in filled_in(correct, confidence) if 0 < r.sum() < len(r)
        ]
        found = RANKED[metric][0](correct, confidence)
        if values:
            seen += 1
            assert (found.worst, found.best) == pytest.approx((min(values), max(values))), (
                correct,
                confidence,
            )
        else:
            assert np.isnan(found.worst) and np.isnan(found.best)
    assert seen > 90


@each("metric", RANKED)
def test_three_missing_right_answers_need_not_tie(metric):
    correct, confidence = np.array([1, 1, 1, 0, 1.0]), np.array([NAN, NAN, NAN, 0.5, 0.5])
    values = [
        by_hand(metric, r, s)
        for r, s in filled_in(correct, confidence, (0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8))
    ]
    found = RANKED[metric][0](correct, confidence)
    assert (found.worst, found.best) == pytest.approx((min(values), max(values)))


def test_a_right_answer_above_a_tied_group_can_cost_average_precision_more_than_one_at_the_end():
    # One wrong answer, then four right ones tied. Last, the missing one gives 4 · 4/5 + 5/6; just
    # above the tie 1/2 + 4 · 5/6.
    found = auprc_bounds([0, 1, 1, 1, 1, 1], [0.9, 0.5, 0.5, 0.5, 0.5, NAN])
    assert found.worst == pytest.approx((1 / 2 + 4 * 5 / 6) / 5)
    assert found.worst < (4 * 4 / 5 + 5 / 6) / 5


def test_auroc_by_hand():
    # Known: 0.9 right beats 0.2 wrong, 1 of 1 pairs. A right and a wrong one are missing: 4 pairs,
    # 3 of them open.
    found = auroc_bounds([1, 0, 1, 0], [0.9, 0.2, NAN, NAN])
    assert (found.worst, found.best) == (0.25, 1.0)
    # One more may be either: right makes 3 x 2 pairs, wrong 2 x 3, with the one pair won in both.
    found = auroc_bounds([1, 0, 1, 0, NAN], [0.9, 0.2, NAN, NAN, 0.5])
    assert (found.worst, found.best) == (pytest.approx(1 / 6), 1.0)


@each(("bounds", "measure"), [(auroc_bounds, auroc), (auprc_bounds, auprc), (brier_bounds, brier)])
def test_with_nothing_missing_both_ends_are_the_metric(bounds, measure):
    rng = np.random.default_rng(3)
    correct, confidence = rng.integers(0, 2, 60), np.round(rng.random(60), 1)
    found = bounds(correct, confidence)
    assert found.worst == pytest.approx(measure(correct, confidence)) == pytest.approx(found.best)


def test_accuracy_mean_confidence_and_brier_by_hand():
    assert accuracy_bounds([1, 0, NAN, NAN]) == accuracy_bounds([1, NAN, NAN, 0])
    assert (accuracy_bounds([1, 0, NAN, 1]).worst, accuracy_bounds([1, 0, NAN, 1]).best) == (
        0.5,
        0.75,
    )
    mean = mean_confidence_bounds([0.5, NAN, 1.0, NAN])
    assert (mean.worst, mean.best) == (0.375, 0.875)
    # 0.04 is known; the missing one and the unknown one cost nothing or 1 each, whatever the
    # latter's confidence.
    score = brier_bounds([1, 0, NAN], [0.8, NAN, 0.5])
    assert (score.worst, score.best) == pytest.approx((2.04 / 3, 0.04 / 3))


def test_brier_ends_are_those_of_every_way_of_filling_in():
    for seed in range(30):
        correct, confidence = tiny(seed)
        values = [np.mean((s - r) ** 2) for r, s in filled_in(correct, confidence, (0, 0.3, 1))]
        found = brier_bounds(correct, confidence)
        assert (found.worst, found.best) == pytest.approx((max(values), min(values)))


@each("bounds", [auroc_bounds, auprc_bounds])
def test_all_missing_leaves_everything_open_and_one_class_nothing(bounds):
    found = bounds([1, 0], [NAN, NAN])
    assert (found.worst, found.best) == ((0, 1) if bounds is auroc_bounds else (0.5, 1))
    assert np.isnan(bounds([1, 1], [0.4, NAN]).best)
    assert bounds([1, NAN], [0.4, NAN]).best == 1  # the unknown one may be wrong


@each("bounds", [auroc_bounds, auprc_bounds, brier_bounds])
@each(
    ("correct", "confidence"),
    [([1, 0], [0.5]), ([2, 0], [0.5, 0.5]), ([[1]], [[0.5]]), ([1, 0], [0.5, np.inf])],
)
def test_bad_arrays_are_refused(bounds, correct, confidence):
    with pytest.raises(ValueError, match="received"):
        bounds(correct, confidence)


@each(
    "call",
    [
        lambda: mean_confidence_bounds([1.2]),
        lambda: mean_confidence_bounds([[0.2]]),
        lambda: accuracy_bounds([3]),
    ],
)
def test_values_out_of_range_are_refused(call):
    with pytest.raises(ValueError, match="received"):
        call()


# The table


def run_tables(rows) -> tuple[pd.DataFrame, pd.DataFrame]:
    """``rows``: (case, level, answer, correct, confidence).

    A missing confidence's reason is "none".
    """
    keys = [
        {"case_id": case, "dataset": "d", "level": level, "model": "x"} for case, level, *_ in rows
    ]
    answers = [
        {**k, "answer": r[2], "correct": r[3], "missing": ""}
        for k, r in zip(keys, rows, strict=True)
    ]
    told = [
        {**k, "method": "m", "confidence": r[4], "bound": "", "missing": "none"}
        for k, r in zip(keys, rows, strict=True)
    ]
    return pd.DataFrame(answers), pd.DataFrame(told)


ROWS = [
    ("a", 1, "x", 1, 0.9),
    ("b", 1, "x", 0, 0.2),
    ("c", 1, "x", 1, NAN),
    ("d", 1, None, 0, 0.7),
    ("e", 1, None, NAN, NAN),
]
ROWS += [("f", 1, "x", 0, 0.3)]
"""Right, wrong, right without a confidence, unreadable (wrong; its confidence counts for nothing),
failed, wrong."""


def table(rows=ROWS, scale: str = "probability", **options) -> pd.DataFrame:
    return missingness_table(*run_tables(rows), {"m": scale}, **options).set_index("metric")


def test_the_table_fills_in_what_is_missing_by_the_projects_rules():
    found = table(min_per_class=1)
    accuracy = found.loc["accuracy"]
    assert accuracy[["method", "n", "n_missing", "value"]].tolist() == ["", 5, 1, 0.4]
    assert accuracy[["worst", "best", "missing"]].tolist() == [2 / 6, 3 / 6, "1 missing"]
    mine = found.drop(index="accuracy")
    assert (mine["method"] == "m").all() and (mine[["n", "n_missing"]] == 3).all(axis=None)
    assert mine.loc["mean_confidence", ["value", "worst", "best"]].tolist() == pytest.approx(
        [1.4 / 3, 1.4 / 6, 4.4 / 6]
    )
    assert mine.loc["brier", ["value", "worst", "best"]].tolist() == pytest.approx(
        [0.14 / 3, 3.14 / 6, 0.14 / 6]
    )
    correct, confidence = [1, 0, 1, 0, NAN, 0], [0.9, 0.2, NAN, NAN, NAN, 0.3]
    for metric, (bounds, measure) in RANKED.items():
        ends = bounds(correct, confidence)
        assert mine.loc[metric, ["value", "worst", "best"]].tolist() == [
            measure([1, 0, 0], [0.9, 0.2, 0.3]),
            ends.worst,
            ends.best,
        ]
    assert mine.loc["auroc", "missing"] == "3 missing, most often: none"


def test_no_sharp_bound_is_claimed_where_none_is_computed():
    found = table(min_per_class=1)
    assert found.loc["ece", ["worst", "best"]].tolist() == [1, 0]
    assert (
        found.loc["pearson", ["worst", "best"]].tolist()
        == found.loc["spearman", ["worst", "best"]].tolist()
        == [-1, 1]
    )
    assert found.loc[["ece", "pearson", "spearman"], "missing"].str.startswith(ONLY_RANGE).all()


def test_a_score_has_no_ends_and_no_calibration():
    found = table(scale="score")
    assert not {"brier", "ece"} & set(found.index)
    assert np.isnan(found.loc["mean_confidence", "worst"]) and found.loc[
        "mean_confidence", "missing"
    ].startswith(NO_ENDS)
    assert found.loc["mean_confidence", "value"] == pytest.approx(1.4 / 3)


def test_a_value_is_withheld_where_there_are_few_of_a_class_and_its_ends_stay():
    found = table()
    assert np.isnan(found.loc["auroc", "value"]) and found.loc["auroc", "missing"].startswith(
        "fewer than 10 correct or wrong; 3 m"
    )
    assert found.loc["auroc", "worst"] < found.loc["auroc", "best"]


def test_with_nothing_missing_the_table_repeats_the_value():
    rows = [
        (case, level, "x", int(i < level / 20), 0.1 * i)
        for i, case in enumerate("abcdef")
        for level in (1, 40, 100)
    ]
    found = table(rows, min_per_class=1)
    np.testing.assert_allclose(found["worst"], found["value"])
    np.testing.assert_allclose(found["best"], found["value"])
    assert (found["n_missing"] == 0).all()
    assert found.loc["pearson", "missing"].startswith(
        "fewer than 3 levels, or one side is the same"
    )


def test_a_method_without_any_value_says_so():
    found = table([(case, 1, "x", i % 2, NAN) for i, case in enumerate("abcd")])
    assert found.drop(index="accuracy")["value"].isna().all()
    assert found.loc[["auroc", "brier"], "missing"].tolist() == ["no confidence: none"] * 2
    assert found.loc["auroc", ["worst", "best"]].tolist() == [0, 1]
    assert found.loc["pearson", "missing"] == f"{ONLY_RANGE}; no confidence: none"


def test_an_answer_without_a_row_for_the_method_is_missing():
    answers, confidence = run_tables(ROWS)
    found = missingness_table(answers, confidence.iloc[:2], {"m": "probability"}).set_index(
        "metric"
    )
    assert found.loc["brier", ["n", "n_missing", "missing"]].tolist() == [
        2,
        4,
        "4 missing, most often: no row in the table",
    ]
