"""Partial rank correlation against a plain regression of residuals, and the table that holds it."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from each import each
from scipy.stats import pearsonr, rankdata, spearmanr
from test_metrics_table import a_run

from studies.benchmark import LACKING, LEFT, MEASURES, information_adjusted_table
from trustlab.metrics import case_weights, metrics_table, percentile_interval
from trustlab.metrics.correlation import partial_spearman, partial_spearman_weighted

LEVELS = np.repeat([1, 50, 100], 20)


def answers(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Correctness, confidence (with ties) and words of n answers, rising over three levels."""
    rng = np.random.default_rng(seed)
    correct = (rng.random(n) < 0.2 + 0.006 * LEVELS).astype(int)
    confidence = np.round(0.5 * rng.random(n) + 0.004 * LEVELS + 0.15 * correct, 1)
    return correct, confidence, LEVELS + rng.integers(0, 60, n)


def by_regression(correct, confidence, level, *others) -> float:
    """Residuals of both after least squares on the levels (and the others' ranks), correlated."""
    design = [(level == q).astype(float) for q in np.unique(level)] + [
        rankdata(other) for other in others
    ]
    columns = np.stack([rankdata(confidence), correct], axis=1)
    left = (
        columns - np.stack(design, axis=1) @ np.linalg.lstsq(np.stack(design, axis=1), columns)[0]
    )
    return float(pearsonr(left[:, 0], left[:, 1])[0])


@each("seed", range(3))
def test_it_is_the_correlation_of_what_a_regression_leaves(seed):
    correct, confidence, words = answers(seed=seed)
    assert partial_spearman(correct, confidence, LEVELS) == pytest.approx(
        by_regression(correct, confidence, LEVELS)
    )
    found = partial_spearman(correct, confidence, LEVELS, words)
    assert found == pytest.approx(by_regression(correct, confidence, LEVELS, words))
    assert found != pytest.approx(partial_spearman(correct, confidence, LEVELS), abs=1e-4)
    share = np.random.default_rng(seed).random(60) + words / 100
    found = partial_spearman(correct, confidence, LEVELS, np.column_stack([words, share]))
    assert found == pytest.approx(by_regression(correct, confidence, LEVELS, words, share))


def test_with_one_level_it_is_spearmans_rho():
    correct, confidence, _ = answers()
    rho = spearmanr(correct, confidence)[0]
    assert partial_spearman(correct, confidence, ["all"] * 60) == pytest.approx(rho)
    assert partial_spearman(correct, -confidence, ["all"] * 60) == pytest.approx(-rho)


def test_given_level_by_hand():
    # Ranks 1, 2, 3, 4, less the levels' means: -0.5, 0.5, -0.5, 0.5; correctness the same: 1 (and
    # -1 the other way round).
    assert partial_spearman([0, 1, 0, 1], [0.1, 0.2, 0.8, 0.9], [1, 1, 2, 2]) == pytest.approx(1)
    assert partial_spearman([1, 0, 1, 0], [0.1, 0.2, 0.8, 0.9], [1, 1, 2, 2]) == pytest.approx(-1)


def test_weights_weigh_the_ranks_of_the_sample():
    correct, confidence, words = answers()
    weights = np.vstack(
        [
            np.ones(60),
            case_weights(np.arange(60) % 20, 30),
            np.random.default_rng(0).random((5, 60)),
        ]
    )
    columns = np.stack([rankdata(confidence), correct, rankdata(words)], axis=1)
    for given in (None, words):
        expected = []
        for weight in weights:
            design = np.stack(
                [
                    *((q == LEVELS) * 1.0 for q in np.unique(LEVELS)),
                    *([] if given is None else [columns[:, 2]]),
                ],
                1,
            )
            root = np.sqrt(weight)[:, None]
            left = (
                columns[:, :2] - design @ np.linalg.lstsq(root * design, root * columns[:, :2])[0]
            )
            products = (weight[:, None] * left).T @ left
            expected.append(products[0, 1] / np.sqrt(products[0, 0] * products[1, 1]))
        found = partial_spearman_weighted(correct, confidence, LEVELS, weights, given)
        np.testing.assert_allclose(found, expected, atol=1e-9)
        assert found[0] == pytest.approx(partial_spearman(correct, confidence, LEVELS, given))


def test_what_the_level_fixes_leaves_nothing():
    correct, confidence, words = answers()
    assert np.isnan(partial_spearman(correct, LEVELS**2, LEVELS)) and np.isnan(
        partial_spearman(correct, LEVELS, LEVELS, words)
    )
    assert np.isnan(partial_spearman(LEVELS > 40, confidence, LEVELS))  # one class at each level
    assert partial_spearman(correct, words, LEVELS) == pytest.approx(
        by_regression(correct, words, LEVELS)
    )
    assert np.isnan(partial_spearman(correct, 3 * words, LEVELS, words))


def test_what_is_known_already_takes_nothing_more():
    correct, confidence, words = answers()
    assert partial_spearman(correct, confidence, LEVELS, 7 * LEVELS) == pytest.approx(
        partial_spearman(correct, confidence, LEVELS)
    )


@each(
    ("correct", "confidence"),
    [([], []), ([1], [0.5]), ([1, 1, 1], [1, 2, 3]), ([1, 0, 1], [0.4] * 3), ([1, 0], [0.1, 0.2])],
)
def test_too_little_is_missing(correct, confidence):
    level = np.arange(len(correct)) if len(correct) == 2 else np.zeros(len(correct))
    assert np.isnan(partial_spearman(correct, confidence, level))
    assert np.isnan(
        partial_spearman_weighted(
            correct, confidence, level, np.ones((4, len(correct))), np.ones(len(correct))
        )
    ).all()


def test_a_weighting_without_a_class_or_without_answers_is_missing():
    weights = [[1, 1, 1, 1], [1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 0, 0]]
    found = partial_spearman_weighted([0, 1, 0, 1], [0.1, 0.2, 0.8, 0.9], [1, 1, 2, 2], weights)
    assert found == pytest.approx([1, np.nan, np.nan, 1], nan_ok=True)


@each(
    ("level", "words", "weights"),
    [
        ([1, 1], None, np.ones((1, 3))),
        ([1, 1, 1], [5, 6], np.ones((1, 3))),
        ([1, 1, 1], [5, 6, np.nan], np.ones((1, 3))),
        ([1, 1, 1], None, np.ones((1, 2))),
        ([1, 1, 1], None, -np.ones((1, 3))),
    ],
)
def test_bad_arrays_are_refused(level, words, weights):
    with pytest.raises(ValueError, match="received"):
        partial_spearman_weighted([1, 0, 1], [0.1, 0.2, 0.3], level, weights, words)


# The table


def told_run(n_cases: int = 30) -> SimpleNamespace:
    """A run with one method that knows something and the two baselines that count what was told."""
    run = a_run(n_cases)
    rng = np.random.default_rng(9)
    run.answers["n_words"] = run.answers["level"] + rng.integers(5, 60, len(run.answers))
    for method, values in (
        ("information_level", run.answers["level"] / 100),
        ("word_count", run.answers["n_words"]),
    ):
        rows = run.confidence[run.confidence["method"] == "good"].assign(
            method=method, confidence=values.astype(float)
        )
        run.confidence = pd.concat([run.confidence, rows], ignore_index=True)
    return run


def one(table: pd.DataFrame, measure: str, method: str = "good") -> dict[str, Any]:
    found = table[(table["metric"] == measure) & (table["method"] == method)]
    assert len(found) == 1
    return found.iloc[0].to_dict()


def test_the_table_has_each_measure_once_with_its_value_and_a_bootstrap_over_cases():
    run, share = told_run(20), np.random.default_rng(1).random(120)
    # answers' order
    run.confidence.loc[run.confidence["method"] == "information_level", "confidence"] = share
    table = information_adjusted_table(run, n_draws=60, seed=3)
    assert list(zip(table["method"], table["metric"], strict=True)) == [
        (method, measure)
        for method in ("good", "information_level", "word_count")
        for measure in MEASURES
    ]
    rows = run.answers.merge(
        run.confidence[run.confidence["method"] == "good"],
        on=["case_id", "dataset", "level", "model"],
    )
    correct, confidence, level, words = (
        rows[name].to_numpy() for name in ("correct", "confidence", "level", "n_words")
    )
    weights = case_weights(rows["case_id"], 60, seed=3)
    for measure, given in (
        ("spearman per answer", (np.zeros(len(rows)), None)),
        ("partial given level", (level, None)),
        ("partial given level and words", (level, words)),
        ("partial given level, words and share", (level, np.column_stack([words, share]))),
    ):
        found = one(table, measure)
        assert found["value"] == pytest.approx(partial_spearman(correct, confidence, *given))
        draws = partial_spearman_weighted(correct, confidence, given[0], weights, given[1])
        assert (found["low"], found["high"]) == pytest.approx(percentile_interval(draws))
        assert (found["n"], found["n_cases"], found["n_missing"], found["missing"]) == (
            120,
            20,
            0,
            "",
        )


def test_areas_are_those_of_the_metrics_table_given_or_made():
    run = told_run(20)
    metrics = metrics_table(run, n_draws=60, scales={})
    table = information_adjusted_table(run, metrics, n_draws=60)
    pd.testing.assert_frame_equal(table, information_adjusted_table(run, n_draws=60))
    usual = metrics.set_index(["method", "metric", "level"])
    for measure, level in (("auroc pooled", "pooled"), ("auroc within", "within")):
        for column in ("value", "low", "high", "n", "n_cases", "n_missing", "missing"):
            assert one(table, measure)[column] == usual.loc[("good", "auroc", level), column]


def test_the_baselines_have_nothing_left_beyond_what_they_count():
    table = information_adjusted_table(told_run(), n_draws=20)
    level, words = (
        one(table, "partial given level", "information_level"),
        one(table, "partial given level and words", "word_count"),
    )
    for row in (level, words, one(table, "partial given level and words", "information_level")):
        assert np.isnan([row["value"], row["low"], row["high"]]).all() and row["missing"] == LEFT
    assert one(table, "partial given level, words and share", "word_count")["missing"] == LEFT
    assert one(table, "spearman per answer", "information_level")["value"] > 0.2
    assert np.isfinite(one(table, "partial given level", "word_count")["value"])


def test_what_cannot_be_had_says_why():
    run = told_run()
    run.answers = run.answers.drop(columns="n_words")
    run.confidence.loc[run.confidence["method"] == "word_count", ["confidence", "missing"]] = [
        np.nan,
        "nothing to count",
    ]
    run.confidence.loc[run.confidence["method"] == "information_level", "confidence"] = 0.5
    table = information_adjusted_table(run, n_draws=20)
    assert (
        one(table, "partial given level and words")["missing"] == LACKING["n_words"]
        and one(table, "partial given level")["missing"] == ""
    )
    for measure in MEASURES:
        assert one(table, measure, "word_count")["missing"] == "no confidence: nothing to count"
        assert one(table, measure, "word_count")["n_missing"] == 180
    assert (
        one(table, "spearman per answer", "information_level")["missing"]
        == "all confidences are alike"
    )
    # a row that is not there is missing too
    run.confidence = run.confidence.drop(run.confidence.index[0])
    row = one(information_adjusted_table(run, n_draws=20), "partial given level")
    assert (row["n"], row["n_missing"], row["n_cases"]) == (179, 1, 30)
    alone = SimpleNamespace(
        answers=run.answers, confidence=run.confidence[run.confidence["method"] == "good"]
    )
    alone.answers["n_words"] = 5
    found = one(
        information_adjusted_table(alone, n_draws=20), "partial given level, words and share"
    )
    assert np.isnan(found["value"]) and found["missing"] == LACKING["share"]
    run.answers["correct"] = 1
    assert (
        one(information_adjusted_table(run, n_draws=20), "spearman per answer")["missing"]
        == "fewer than 10 correct or wrong"
    )


def test_metrics_of_another_run_are_refused():
    run = told_run(12)
    with pytest.raises(ValueError, match="metrics"):
        information_adjusted_table(run, metrics_table(a_run(12), n_draws=5, scales={}), n_draws=5)
