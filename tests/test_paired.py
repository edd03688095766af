"""Paired differences: values worked out by hand, the same cases in every draw, and what is withheld
with its reason."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from resampled import auroc_weighted, case_weights

from trustlab.measures import metrics_table
from trustlab.metrics.discrimination import RANKING
from trustlab.metrics.estimate import Draws, Rows, interval, percentile_interval, within
from trustlab.metrics.paired import METRICS, paired_differences
from trustlab.metrics.significance import holm

KEY = {"dataset": "made", "model": "m"}
NAN = float("nan")


def tidy(
    columns: dict[str, list[float]],
    correct: list[float] | dict[str, list[float]],
    levels: list[int] | None = None,
):
    """One row per case and column; ``levels`` repeats the cases, as many to a level."""
    n = len(next(iter(columns.values())))
    at = levels or [100] * n
    of_level = [sum(q == at[j] for j in range(i)) for i, q in enumerate(at)]
    rows = []
    for name, values in columns.items():
        right = correct[name] if isinstance(correct, dict) else correct
        for i, value in enumerate(values):
            case = f"c{of_level[i]:02d}"
            rows.append(
                {
                    **KEY,
                    "case_id": case,
                    "level": at[i],
                    "variant": name,
                    "confidence": value,
                    "correct": right[i],
                }
            )
    return pd.DataFrame(rows)


def many(seed: int = 0, n: int = 40) -> pd.DataFrame:
    """Three levels of ``n`` cases; "good" knows more than "base", "bad" nothing."""
    rng = np.random.default_rng(seed)
    levels = [20] * n + [60] * n + [100] * n
    correct = (rng.random(3 * n) < np.repeat([0.4, 0.6, 0.7], n)).astype(float)
    noise = rng.random((3, 3 * n))
    columns = {"base": 0.5 * correct + noise[0], "good": 2 * correct + noise[1], "bad": noise[2]}
    return tidy({k: list(v) for k, v in columns.items()}, list(correct), levels)


def row(
    found: pd.DataFrame, metric: str = "auroc", level: str = "pooled", variant: str = "b"
) -> pd.Series:
    return found.set_index(["variant", "metric", "level"]).loc[(variant, metric, level)]


FOUR = tidy({"a": [0.9, 0.4, 0.6, 0.1], "b": [0.9, 0.8, 0.2, 0.1]}, [1, 1, 0, 0])


@pytest.mark.parametrize(
    ("metric", "reference", "value"), [("auroc", 0.75, 1.0), ("auprc", (1 + 2 / 3) / 2, 1.0)]
)
def test_four_answers_by_hand(metric, reference, value):
    one = row(paired_differences(FOUR, "a", min_per_class=1), metric)
    assert (one["value"], one["reference"], one["difference"]) == pytest.approx(
        (value, reference, value - reference)
    )
    assert (one["n"], one["n_cases"], one["n_missing"]) == (4, 4, 0)


def test_within_level_is_the_mean_over_levels_that_have_both_classes():
    # level 20: a 1 of 1 pairs right, b 0 of 1; level 60: a and b right; level 100 has right answers
    # alone
    columns = {"a": [0.8, 0.2, 0.9, 0.3, 0.5, 0.4], "b": [0.1, 0.6, 0.9, 0.3, 0.1, 0.2]}
    table = tidy(columns, [1, 0, 1, 0, 1, 1], [20, 20, 60, 60, 100, 100])
    one = row(paired_differences(table, "a", min_per_class=1), level="within")
    assert (one["value"], one["reference"], one["n"]) == (0.5, 1.0, 4)
    assert one["missing"].startswith("one class only at level 100: left out")


@pytest.mark.parametrize("level", ["pooled", "within"])
def test_the_interval_comes_from_both_columns_in_the_same_draws(level):
    table = many()
    one = row(paired_differences(table, "base", n_draws=300, seed=5), level=level, variant="good")
    sides = {}
    for name in ("good", "base"):
        part = table[table["variant"] == name].sort_values(["level", "case_id"])
        draws = case_weights(part["case_id"], 300, 5)
        where = (
            [part["level"].to_numpy() == q for q in (20, 60, 100)]
            if level == "within"
            else [np.full(len(part), True)]
        )
        right, said = part["correct"].to_numpy(), part["confidence"].to_numpy()
        sides[name] = np.mean(
            [auroc_weighted(right[at], said[at], draws[:, at]) for at in where], axis=0
        )
    assert (one["low"], one["high"]) == pytest.approx(
        percentile_interval(sides["good"] - sides["base"])
    )
    assert one["low"] > 0


@pytest.mark.parametrize("level", ["pooled", "within"])
def test_p_and_standard_error_come_from_the_draws_of_the_interval(level):
    table = many()
    one = row(paired_differences(table, "base", n_draws=300, seed=5), level=level, variant="bad")
    sides = []
    for name in ("bad", "base"):
        part = table[table["variant"] == name].sort_values(["level", "case_id"])
        weights = case_weights(part["case_id"], 300, 5)
        groups = part["level"].to_numpy() if level == "within" else np.zeros(len(part))
        right, said = part["correct"].to_numpy(), part["confidence"].to_numpy()
        at = [groups == q for q in np.unique(groups)]
        each_level = [auroc_weighted(right[q], said[q], weights[:, q]) for q in at]
        sides.append(np.nanmean(each_level, axis=0))
    gaps = sides[0] - sides[1]
    assert one["p"] == pytest.approx((2 * min((gaps <= 0).sum(), (gaps >= 0).sum()) + 1) / 301)
    assert one["standard_error"] == pytest.approx(gaps.std(ddof=1))


def test_p_is_small_where_the_interval_leaves_0_out_and_only_there():
    found = pd.concat(paired_differences(many(seed, 20), "base", n_draws=400) for seed in range(12))
    tested = found[found["p"].notna()]
    outside = (tested["low"] > 0) | (tested["high"] < 0)
    assert 10 < outside.sum() < len(tested) - 10
    assert tested.loc[outside, "p"].max() <= 0.055 and tested.loc[~outside, "p"].min() >= 0.045


def test_holm_is_over_what_one_model_and_data_set_compare_by_one_metric_at_one_level():
    table = pd.concat([many().assign(method="x"), many(1).assign(method="y")])
    found = paired_differences(pd.concat([table, table.assign(model="other")]), "base", n_draws=200)
    for _, part in found.groupby(["model", "metric", "level"]):
        assert len(part) == 4  # two columns of two methods
        assert part["p_holm"].tolist() == pytest.approx(holm(part["p"]).tolist(), nan_ok=True)
    assert (found["p_holm"] > found["p"]).any()


def test_methods_may_be_the_columns():
    table = FOUR.rename(columns={"variant": "method"})
    found = paired_differences(table, "a", by="method", min_per_class=1)
    assert "variant" not in found and found.columns.tolist().count("method") == 1
    assert found["difference"].tolist() == pytest.approx(
        paired_differences(FOUR, "a", min_per_class=1)["difference"], nan_ok=True
    )


def test_values_are_those_of_the_metrics_table():
    table = many()
    run = SimpleNamespace(
        answers=table[table["variant"] == "base"].assign(answer="x"),
        confidence=table.rename(columns={"variant": "method"}).assign(bound="", missing=""),
    )
    usual = metrics_table(run, n_draws=50).set_index(["method", "metric", "level"])["value"]
    found = paired_differences(table, "base", n_draws=50)
    assert set(found["metric"]) == set(METRICS)
    for one in found.itertuples():
        assert one.value == pytest.approx(usual[one.variant, one.metric, one.level])
        assert one.reference == pytest.approx(usual["base", one.metric, one.level])


def test_equal_columns_differ_by_nothing_and_have_no_interval_that_would_claim_certainty():
    table = many()
    twin = table[table["variant"] == "base"].assign(variant="twin")
    found = paired_differences(pd.concat([table, twin]), "base", n_draws=100).query(
        "variant == 'twin'"
    )
    assert (found["difference"] == 0).all() and found[
        ["low", "high", "p", "p_holm", "standard_error"]
    ].isna().all(axis=None)
    assert set(found["missing"]) == {"no interval: all draws alike"}


def test_ranks_over_three_levels_that_no_draw_changes_have_no_interval():
    # accuracy 0.1, 0.5, 0.9 and confidences far apart: every draw has the same order of levels in
    # both columns
    n = 60
    levels = [20] * n + [60] * n + [100] * n
    correct = [float(i % 10 < share) for share in (1, 5, 9) for i in range(n)]
    up = [q + 0.01 * (i % 7) for i, q in enumerate(levels)]
    table = tidy({"up": up, "down": [-value for value in up]}, correct, levels)
    one = row(paired_differences(table, "up", n_draws=50), "spearman", "across", "down")
    assert one["difference"] == pytest.approx(-2) and np.isnan(one["low"]) and np.isnan(one["high"])
    assert one["missing"] == "no interval: all draws alike"
    assert (
        row(paired_differences(table, "up", n_draws=50), "pearson", "across", "down")["low"] < -1.9
    )


def test_an_interval_of_no_width_is_none_even_where_a_few_draws_differ():
    draws = np.zeros(100)
    draws[0] = 1.0
    one = interval(draws, np.arange(12), test=True)
    assert np.isnan([one["low"], one["p"]]).all()
    assert one["missing"] == "no interval: nearly all draws alike"
    draws[:5] = 1.0
    assert interval(draws, np.arange(12))["high"] == 1


def test_exchanging_the_two_turns_every_sign():
    table = many()[lambda t: t["variant"] != "bad"]
    there, back = (paired_differences(table, name, n_draws=100) for name in ("base", "good"))
    assert there["difference"].to_numpy() == pytest.approx(-back["difference"].to_numpy())
    assert there["low"].to_numpy() == pytest.approx(-back["high"].to_numpy())


def test_the_order_of_rows_does_not_matter():
    table = many()
    pd.testing.assert_frame_equal(
        paired_differences(table, "base", n_draws=50).sort_values(
            ["variant", "metric", "level"], ignore_index=True
        ),
        paired_differences(table.sample(frac=1, random_state=3), "base", n_draws=50).sort_values(
            ["variant", "metric", "level"], ignore_index=True
        ),
    )


def test_only_rows_that_the_pair_shares_count_and_the_others_are_told():
    table = tidy(
        {
            "a": [0.9, 0.4, 0.6, 0.1, 0.2],
            "b": [NAN, 0.8, 0.2, 0.1, 0.7],
            "c": [0.5, NAN, 0.5, 0.5, 0.5],
        },
        [1, 1, 0, 0, NAN],
    )
    pairwise = paired_differences(table, "a", min_per_class=1)
    assert row(pairwise)[["n", "n_missing", "reference"]].to_list() == [3, 2, 0.5]


def test_columns_with_other_answers_are_judged_by_their_own():
    table = tidy(
        {"a": [0.9, 0.4, 0.6, 0.1], "b": [0.9, 0.4, 0.6, 0.1]},
        {"a": [1, 1, 0, 0], "b": [1, 0, 1, 0]},
    )
    one = row(paired_differences(table, "a", min_per_class=1))
    assert (one["value"], one["reference"]) == (1.0, 0.75)


def test_pearson_is_between_accuracy_and_mean_confidence_over_the_levels():
    table = many()
    found = row(paired_differences(table, "base", n_draws=50), "pearson", "across", "good")
    means = (
        table[table["variant"] == "good"]
        .groupby("level")[["correct", "confidence"]]
        .mean()
        .to_numpy()
    )
    assert found["value"] == pytest.approx(np.corrcoef(means.T)[0, 1])
    assert found["low"] <= found["difference"] <= found["high"]


def test_methods_and_runs_are_compared_each_with_its_own():
    table = pd.concat(
        [FOUR.assign(method="x"), FOUR.assign(method="y", confidence=1 - FOUR["confidence"])]
    )
    found = paired_differences(
        pd.concat([table, table.assign(model="other")]), "a", metrics=["auroc"], min_per_class=1
    )
    pooled = found[found["level"] == "pooled"]
    assert (
        list(pooled["model"]) == ["m", "m", "other", "other"]
        and list(pooled["method"]) == ["x", "y"] * 2
    )
    assert pooled["difference"].to_list() == [0.25, -0.25] * 2


def test_what_is_too_little_has_no_value_or_no_interval_and_says_why():
    few = row(paired_differences(FOUR, "a"))
    assert np.isnan(few["difference"]) and few["missing"] == "fewer than 10 correct or wrong"
    hurried = row(paired_differences(FOUR, "a", min_per_class=1))
    assert np.isnan(hurried["low"]) and hurried["missing"] == "no interval: fewer than 12 cases"
    assert np.isnan([hurried["p"], hurried["p_holm"], hurried["standard_error"]]).all()
    assert (
        row(paired_differences(FOUR, "a", min_per_class=1), "pearson", "across")["missing"]
        == "fewer than 3 levels"
    )


def test_a_column_without_values_tells_its_reason():
    table = FOUR.assign(missing="").assign(
        confidence=FOUR["confidence"].where(FOUR["variant"] == "a"),
        missing=["", "", "", "", *["no probabilities"] * 4],
    )
    found = paired_differences(table, "a", min_per_class=1)
    assert set(found["missing"]) == {"no confidence: no probabilities"} and set(found["n"]) == {0}


def test_a_level_left_with_one_class_by_a_draw_is_left_out_of_that_draw():
    table = pd.DataFrame(
        {"case_id": list("abcd"), "level": [20, 20, 60, 60], "correct": [1, 0, 1, 0]}
    )
    table = table.assign(confidence=[0.9, 0.1, 0.2, 0.8])
    weights = np.array([[1, 1, 1, 1], [2, 0, 1, 1], [2, 0, 2, 0]])
    rows = Rows.of(table, "confidence", Draws(np.array(list("abcd")), weights.T.astype(float)))
    found = rows.drawn(within(RANKING["auroc"][0]))
    np.testing.assert_array_equal(found, [0.5, 0.5, 0.0, NAN])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reference": "z"}, "must hold the reference 'z'"),
        ({"metrics": ["brier"]}, "metrics must be some of"),
        ({"table": FOUR[FOUR["variant"] == "a"]}, "and another; it holds"),
        ({"table": pd.concat([FOUR, FOUR])}, "may come once"),
        ({"table": FOUR.drop(columns="correct")}, "lacks the columns"),
    ],
)
def test_what_cannot_be_compared_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        paired_differences(**{"table": FOUR, "reference": "a", **change})
