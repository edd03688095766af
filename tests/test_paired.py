"""Differences of pairs: by hand, the same cases in every draw, p-values, the best of several, and
how many cases tell a difference."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from each import each
from resampled import without_each
from saying import saying, says

from trustlab.metrics.estimate import TOO_FEW
from trustlab.metrics.intervals import jackknife_error, opposed_p, with_extremes
from trustlab.metrics.paired import paired_differences
from trustlab.metrics.significance import cases_shown, holm, sample_size_for_power

KEY = {"dataset": "made", "model": "m"}
NAN = float("nan")


def tidy(columns: dict[str, list[float]], correct: list[float], levels: list[int] | None = None):
    """One row per case and column; ``levels`` repeats the cases, as many to a level."""
    at = levels or [100] * len(correct)
    ids = [f"c{sum(q == at[j] for j in range(i)):02d}" for i, q in enumerate(at)]
    base = pd.DataFrame({"case_id": ids, "level": at, "correct": correct}).assign(**KEY)
    parts = [base.assign(variant=name, confidence=values) for name, values in columns.items()]
    return pd.concat(parts, ignore_index=True)


def many(seed: int = 0, n: int = 40) -> pd.DataFrame:
    """Three levels of ``n`` cases; "good" knows more than "base", "bad" nothing."""
    rng = np.random.default_rng(seed)
    correct = (rng.random(3 * n) < np.repeat([0.4, 0.6, 0.7], n)).astype(float)
    noise = rng.random((3, 3 * n))
    columns = {"base": 0.5 * correct + noise[0], "good": 2 * correct + noise[1], "bad": noise[2]}
    levels = [20] * n + [60] * n + [100] * n
    return tidy({k: list(v) for k, v in columns.items()}, list(correct), levels)


def row(found: pd.DataFrame, metric: str = "auroc", level: str = "pooled", variant: str = "b"):
    return found.set_index(["variant", "metric", "level"]).loc[(variant, metric, level)]


FOUR = tidy({"a": [0.9, 0.4, 0.6, 0.1], "b": [0.9, 0.8, 0.2, 0.1]}, [1, 1, 0, 0])


def test_four_answers_by_hand_and_too_few_for_an_interval():
    found = paired_differences(FOUR, "a", min_per_class=1)
    for metric, reference in (("auroc", 0.75), ("auprc", (1 + 2 / 3) / 2)):
        one = row(found, metric)
        values = (one["value"], one["reference"], one["difference"])
        assert values == pytest.approx((1.0, reference, 1 - reference))
        assert (one["n"], one["n_cases"], one["n_missing"]) == (4, 4, 0)
        assert one[["low", "p", "p_holm", "standard_error"]].isna().all()
        assert one["missing"] == TOO_FEW
    assert says(row(found, "pearson", "across")["missing"], 3, "levels")
    # level 20: a 1 of 1 pairs right, b 0 of 1; level 60: both right; level 100: right answers alone
    columns = {"a": [0.8, 0.2, 0.9, 0.3, 0.5, 0.4], "b": [0.1, 0.6, 0.9, 0.3, 0.1, 0.2]}
    table = tidy(columns, [1, 0, 1, 0, 1, 1], [20, 20, 60, 60, 100, 100])
    one = row(paired_differences(table, "a", min_per_class=1), level="within")
    assert (one["value"], one["reference"], one["n"]) == (0.5, 1.0, 4)
    assert says(one["missing"], "level 100", "left out")


def within_levels(correct, confidence, level) -> float:
    """Concordant pairs by pairs, level by level."""
    won = n = 0.0
    for q in np.unique(level):
        right, wrong = (confidence[(level == q) & (correct == hit)] for hit in (1, 0))
        gaps = right[:, None] - wrong
        won, n = won + (gaps > 0).sum() + 0.5 * (gaps == 0).sum(), n + gaps.size
    return won / n


@each("variant", ["good", "bad"])
def test_interval_p_and_error_come_from_both_columns_without_the_same_case(variant):
    table = many()
    one, sides = row(paired_differences(table, "base"), level="within", variant=variant), []
    for name in (variant, "base"):
        part = table[table["variant"] == name]
        columns = [part[c].to_numpy() for c in ("correct", "confidence", "level")]
        leaves = without_each(within_levels, part["case_id"], *columns)
        sides.append(np.append(within_levels(*columns), leaves))
    gaps, base = sides[0] - sides[1], table[table["variant"] == "base"]
    every = [base[base["correct"] == hit]["case_id"] for hit in (0, 1)]
    answers = min(map(len, every)) * base["case_id"].nunique() / len(base)
    r = np.sqrt(answers * min(cases.nunique() for cases in every))
    error = jackknife_error(gaps[1:])
    assert one["difference"] == pytest.approx(gaps[0])
    assert one["standard_error"] == pytest.approx(error)
    assert (one["low"], one["high"]) == pytest.approx(with_extremes(gaps[0], error, r, (-1, 1)))
    assert one["p"] == pytest.approx(opposed_p(gaps[0], error, r))
    assert (one["p"] < 0.05) == (variant == "bad")  # 0.12 is little for 40 cases


def test_holm_is_over_what_one_model_and_data_set_compare_by_one_metric_at_one_level():
    table = pd.concat([many().assign(method="x"), many(1).assign(method="y")])
    found = paired_differences(pd.concat([table, table.assign(model="other")]), "base")
    for _, part in found.groupby(["model", "metric", "level"]):
        assert len(part) == 4  # two columns of two methods
        assert part["p_holm"].tolist() == pytest.approx(holm(part["p"]).tolist(), nan_ok=True)
    assert (found["p_holm"] > found["p"]).any()


def test_only_rows_that_the_pair_shares_count_and_the_others_are_told():
    columns = {"a": [0.9, 0.4, 0.6, 0.1, 0.2], "b": [NAN, 0.8, 0.2, 0.1, 0.7]}
    pairwise = paired_differences(tidy(columns, [1, 1, 0, 0, NAN]), "a", min_per_class=1)
    assert row(pairwise)[["n", "n_missing", "reference"]].to_list() == [3, 2, 0.5]
    reasons = ["", "", "", "", *["no probabilities"] * 4]
    none = FOUR.assign(missing=reasons, confidence=FOUR["confidence"].where(FOUR["variant"] == "a"))
    found = paired_differences(none, "a", min_per_class=1)
    assert {says(why, "no confidence", "no probabilities") for why in found["missing"]} == {True}
    assert set(found["n"]) == {0}


def test_accuracies_are_of_the_answers_that_both_sides_have_graded():
    columns = {"a": [1.0] * 4, "b": [1.0] * 4}
    table = tidy(columns, [1, 1, 0, 0])
    b_only = table["variant"].eq("b").to_numpy()
    graded = table.assign(correct=np.where(b_only, [1, 0, NAN, 0] * 2, table["correct"]))
    one = row(paired_differences(graded, "a", metrics=["accuracy"]), "accuracy")
    assert (one["n"], one["n_missing"]) == (3, 1)
    values = one[["value", "reference", "difference"]].to_list()
    assert values == pytest.approx([1 / 3, 2 / 3, -1 / 3])
    none = table.assign(correct=table["correct"].where(~b_only))
    found = paired_differences(none, "a", metrics=["accuracy", "auroc"], min_per_class=1)
    assert {says(why, "graded", "both") for why in found["missing"]} == {True}


@each(
    ("change", "message"),
    [
        ({"reference": "z"}, ("reference", "'z'")),
        ({"table": FOUR[FOUR["variant"] == "a"]}, ("another", "holds")),
        ({"table": pd.concat([FOUR, FOUR])}, "once"),
    ],
)
def test_what_cannot_be_compared_is_refused(change, message):
    with pytest.raises(ValueError, match=saying(message)):
        paired_differences(**{"table": FOUR, "reference": "a", **change})


def test_p_values_by_hand():
    # Sorted 0.01, 0.02, 0.04: 3 x 0.01 = 0.03, 2 x 0.02 = 0.04, 1 x 0.04. The missing one is none.
    assert holm([0.04, NAN, 0.01, 0.02]) == pytest.approx([0.04, NAN, 0.03, 0.04], nan_ok=True)
    assert holm([0.01, 0.011])[1] == 0.02  # never below the one before it


def test_cases_needed_by_hand():
    # (1.959964 + 0.841621) * 0.05 / 0.1 = 1.400793; its square times 40 is 78.49
    assert sample_size_for_power(0.1, 0.05, 40) == 79 == sample_size_for_power(-0.1, 0.05, 40)
    assert sample_size_for_power(0.9, 1e-6, 40) == 2  # never fewer
    shown = [cases_shown(n) for n in (67.0, 1234.0, 10_000.0, 10_001.0, NAN)]
    assert shown == ["67", "1,234", "10,000", "> 10,000", "–"]
