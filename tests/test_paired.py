"""Paired differences: values worked out by hand, the same cases in every draw, and what is withheld
with its reason."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from each import each
from resampled import auroc_weighted, case_weights

from trustlab.measures import metrics_table
from trustlab.metrics.estimate import percentile_interval
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
    ids = [f"c{sum(q == at[j] for j in range(i)):02d}" for i, q in enumerate(at)]
    parts = []
    for name, values in columns.items():
        right = correct[name] if isinstance(correct, dict) else correct
        part = pd.DataFrame({"case_id": ids, "level": at, "confidence": values, "correct": right})
        parts.append(part.assign(variant=name, **KEY))
    return pd.concat(parts, ignore_index=True)


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


def test_four_answers_by_hand_and_too_few_for_an_interval():
    found = paired_differences(FOUR, "a", min_per_class=1)
    for metric, reference in (("auroc", 0.75), ("auprc", (1 + 2 / 3) / 2)):
        one = row(found, metric)
        values = (one["value"], one["reference"], one["difference"])
        assert values == pytest.approx((1.0, reference, 1 - reference))
        assert (one["n"], one["n_cases"], one["n_missing"]) == (4, 4, 0)
        assert one[["low", "p", "p_holm", "standard_error"]].isna().all()
        assert one["missing"] == "no interval: fewer than 12 cases"
    assert row(found, "pearson", "across")["missing"] == "fewer than 3 levels"
    few = row(paired_differences(FOUR, "a"))
    assert np.isnan(few["difference"]) and few["missing"] == "fewer than 10 correct or wrong"
    methods = FOUR.rename(columns={"variant": "method"})  # may be the columns
    same = paired_differences(methods, "a", by="method", min_per_class=1)
    assert same["difference"].tolist() == pytest.approx(found["difference"], nan_ok=True)


def test_within_level_is_the_mean_over_levels_that_have_both_classes():
    # level 20: a 1 of 1 pairs right, b 0 of 1; level 60: both right; level 100: right answers alone
    columns = {"a": [0.8, 0.2, 0.9, 0.3, 0.5, 0.4], "b": [0.1, 0.6, 0.9, 0.3, 0.1, 0.2]}
    table = tidy(columns, [1, 0, 1, 0, 1, 1], [20, 20, 60, 60, 100, 100])
    one = row(paired_differences(table, "a", min_per_class=1), level="within")
    assert (one["value"], one["reference"], one["n"]) == (0.5, 1.0, 4)
    assert one["missing"].startswith("one class only at level 100: left out")


@each("level", ["pooled", "within"])
@each("variant", ["good", "bad"])
def test_interval_p_and_error_come_from_both_columns_in_the_same_draws(level, variant):
    table = many()
    one = row(paired_differences(table, "base", n_draws=300, seed=5), level=level, variant=variant)
    sides = []
    for name in (variant, "base"):
        part = table[table["variant"] == name].sort_values(["level", "case_id"])
        weights = case_weights(part["case_id"], 300, 5)
        groups = part["level"].to_numpy() if level == "within" else np.zeros(len(part))
        right, said = part["correct"].to_numpy(), part["confidence"].to_numpy()
        at = [groups == q for q in np.unique(groups)]
        each_level = [auroc_weighted(right[q], said[q], weights[:, q]) for q in at]
        sides.append(np.nanmean(each_level, axis=0))
    gaps = sides[0] - sides[1]
    assert (one["low"], one["high"]) == pytest.approx(percentile_interval(gaps))
    assert one["p"] == pytest.approx((2 * min((gaps <= 0).sum(), (gaps >= 0).sum()) + 1) / 301)
    assert one["standard_error"] == pytest.approx(gaps.std(ddof=1))
    assert (one["low"] > 0) == (variant == "good")


def test_holm_is_over_what_one_model_and_data_set_compare_by_one_metric_at_one_level():
    table = pd.concat([many().assign(method="x"), many(1).assign(method="y")])
    found = paired_differences(pd.concat([table, table.assign(model="other")]), "base", n_draws=200)
    for _, part in found.groupby(["model", "metric", "level"]):
        assert len(part) == 4  # two columns of two methods
        assert part["p_holm"].tolist() == pytest.approx(holm(part["p"]).tolist(), nan_ok=True)
    assert (found["p_holm"] > found["p"]).any()
    models = [found[found["model"] == name].drop(columns="model") for name in ("m", "other")]
    pd.testing.assert_frame_equal(*(part.reset_index(drop=True) for part in models))


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
    found = paired_differences(pd.concat([table, twin]), "base", n_draws=100)
    found = found[found["variant"] == "twin"]
    ends = ["low", "high", "p", "p_holm", "standard_error"]
    assert (found["difference"] == 0).all() and found[ends].isna().all(axis=None)
    assert set(found["missing"]) == {"no interval: all draws alike"}


def test_ranks_over_three_levels_that_no_draw_changes_have_no_interval():
    # accuracy 0.1, 0.5, 0.9 and confidences far apart: every draw has the same order of levels
    n = 60
    levels = [20] * n + [60] * n + [100] * n
    correct = [float(i % 10 < share) for share in (1, 5, 9) for i in range(n)]
    up = [q + 0.01 * (i % 7) for i, q in enumerate(levels)]
    table = tidy({"up": up, "down": [-value for value in up]}, correct, levels)
    found = paired_differences(table, "up", n_draws=50)
    one = row(found, "spearman", "across", "down")
    assert one["difference"] == pytest.approx(-2) and np.isnan([one["low"], one["high"]]).all()
    assert one["missing"] == "no interval: all draws alike"
    assert row(found, "pearson", "across", "down")["low"] < -1.9


def test_exchanging_the_two_turns_every_sign_and_the_order_of_rows_does_not_matter():
    table = many()[lambda t: t["variant"] != "bad"].sample(frac=1, random_state=3)
    there, back = (paired_differences(table, name, n_draws=100) for name in ("base", "good"))
    assert there["difference"].to_numpy() == pytest.approx(-back["difference"].to_numpy())
    assert there["low"].to_numpy() == pytest.approx(-back["high"].to_numpy())
    pd.testing.assert_frame_equal(
        there, paired_differences(table.sort_index(), "base", n_draws=100)
    )


def test_only_rows_that_the_pair_shares_count_and_the_others_are_told():
    columns = {
        "a": [0.9, 0.4, 0.6, 0.1, 0.2],
        "b": [NAN, 0.8, 0.2, 0.1, 0.7],
        "c": [0.5, NAN, 0.5, 0.5, 0.5],
    }
    pairwise = paired_differences(tidy(columns, [1, 1, 0, 0, NAN]), "a", min_per_class=1)
    assert row(pairwise)[["n", "n_missing", "reference"]].to_list() == [3, 2, 0.5]
    reasons = ["", "", "", "", *["no probabilities"] * 4]
    none = FOUR.assign(missing=reasons, confidence=FOUR["confidence"].where(FOUR["variant"] == "a"))
    found = paired_differences(none, "a", min_per_class=1)
    assert set(found["missing"]) == {"no confidence: no probabilities"} and set(found["n"]) == {0}


def test_columns_with_other_answers_are_judged_by_their_own():
    columns = {name: [0.9, 0.4, 0.6, 0.1] for name in "ab"}
    table = tidy(columns, {"a": [1, 1, 0, 0], "b": [1, 0, 1, 0]})
    one = row(paired_differences(table, "a", min_per_class=1))
    assert (one["value"], one["reference"]) == (1.0, 0.75)


@each(
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
