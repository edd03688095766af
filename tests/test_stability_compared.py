"""Is one method more stable than another on the same views? Differences of CVs, and the most stable
of each family."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from resampled import case_weights
from test_robustness import confidence, one

from studies.robustness import (
    NOT_SHARED,
    cv_differences,
    variation_table,
)
from trustlab.metrics.estimate import TOO_FEW, percentile_interval

NAN = float("nan")
CONDITIONS = ("original", "paraphrase_1", "paraphrase_2", "paraphrase_3")
WOBBLE = {"medconf": 0.05, "asp": 0.01, "poc": 0.05, "semantic_poc": 0.12, "ce": 0.0}
"""Standard deviation of each method's confidence over the conditions."""


def made(n: int = 24, seed: int = 0, level: int = 100, **lost: int) -> pd.DataFrame:
    """``n`` views a method; of ``lost`` methods so many views have no value in one condition."""
    rng = np.random.default_rng(seed)
    parts = []
    for method, wobble in WOBBLE.items():
        rows = (
            rng.uniform(0.4, 0.8, (n, 1)) + rng.normal(0, wobble, (n, 4))
            if wobble
            else np.ones((n, 4))
        )
        rows[: lost.get(method, 0), 1] = NAN
        parts.append(
            confidence({name: list(rows[:, i]) for i, name in enumerate(CONDITIONS)}, method, level)
        )
    return pd.concat(parts, ignore_index=True)


def views(table: pd.DataFrame, method: str) -> np.ndarray:
    """A method's values under the paraphrased conditions, (n, 3)."""
    mine = table[table["method"] == method].pivot(
        index=["case_id", "level"], columns="condition", values="confidence"
    )
    return mine[list(CONDITIONS[1:])].to_numpy()


def cv_group_of(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    means = weights @ rows / weights.sum(axis=1, keepdims=True)
    return 100 * means.std(axis=1) / means.mean(axis=1)


def cv_sample_of(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return weights @ (100 * rows.std(axis=1) / rows.mean(axis=1)) / weights.sum(axis=1)


@pytest.mark.parametrize(("metric", "of"), [("cv_group", cv_group_of), ("cv_sample", cv_sample_of)])
def test_the_difference_is_drawn_from_both_on_the_same_cases(metric, of):
    table = made()
    row = one(cv_differences(table, n_draws=300, seed=2), method="asp", metric=metric, level="all")
    draws = case_weights(np.unique(table["case_id"]), 300, 2).astype(float)
    mine, theirs = (of(views(table, m), draws) for m in ("asp", "medconf"))
    assert (row["low"], row["high"]) == pytest.approx(percentile_interval(mine - theirs))
    assert row["difference"] == pytest.approx(row["value"] - row["reference"])
    variation = variation_table(table, 10)
    for name, column in (("asp", "value"), ("medconf", "reference")):
        assert row[column] == pytest.approx(
            one(variation, method=name, metric=metric, level="all")["value"]
        )


def test_a_more_stable_method_lies_below_0_and_a_less_stable_above():
    found = cv_differences(made(), n_draws=300)
    assert list(found.columns[:6]) == ["model", "dataset", "method", "family", "against", "level"]
    assert set(found["level"]) == {"100", "all"}
    sample = found[found["metric"].eq("cv_sample") & found["level"].eq("100")].set_index("method")
    assert (
        sample.loc["asp", "high"] < 0 < sample.loc["semantic_poc", "low"]
        and sample.loc["poc", "p"] > 0.05
    )
    assert sample.loc["asp", "p_holm"] < 0.05 and sample.loc["asp", "family"] == "token"
    assert sample.loc["ce", "value"] == 0 and sample.loc["ce", "difference"] == pytest.approx(
        -sample.loc["ce", "reference"]
    )


def test_a_method_with_few_views_is_held_against_the_reference_on_its_own():
    found = cv_differences(made(asp=16), n_draws=50)
    few, usual = (one(found, method=m, metric="cv_sample", level="all") for m in ("asp", "poc"))
    assert (few["n"], few["n_missing"], usual["n"]) == (8, 16, 24) and few["missing"] == TOO_FEW
    assert (
        few["reference"] != usual["reference"]
        and np.isnan([few["low"], few["p"], few["p_holm"]]).all()
    )


def test_a_view_of_mean_0_has_no_cv_sample_and_is_left_out_of_both():
    table = made()
    table.loc[table["method"].eq("poc") & table["case_id"].eq("c0"), "confidence"] = 0.0
    found = cv_differences(table, n_draws=50)
    assert one(found, method="poc", metric="cv_sample", level="all")["n"] == 23
    assert one(found, method="poc", metric="cv_group", level="all")["n"] == 24
    table.loc[table["method"].eq("poc"), "confidence"] = 0.0
    nothing = cv_differences(table, n_draws=50)
    assert (
        one(nothing, method="poc", metric="cv_group", level="all")["missing"]
        == "the mean confidence is 0"
    )
    assert one(nothing, method="poc", metric="cv_sample", level="all")["missing"] == NOT_SHARED


def test_a_reference_without_views_says_so():
    nobody = cv_differences(made(medconf=24), n_draws=20)
    assert nobody["difference"].isna().all() and set(nobody["missing"]) == {NOT_SHARED}


def test_an_unknown_reference_is_refused_and_one_condition_gives_no_row():
    with pytest.raises(ValueError, match="reference is 'entropy'; the run has"):
        cv_differences(made(), "entropy", n_draws=10)
    single = made()[lambda t: t["condition"].isin(["original", "paraphrase_1"])]
    assert cv_differences(single, n_draws=10).empty
