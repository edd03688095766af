"""Coefficients of variation over conditions: by hand, by properties, and what has none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from each import each
from resampled import jackknife

from benchmarks.records import random_records
from trustlab.confidence import METHODS
from trustlab.metrics.coverage import NOT_HELD
from trustlab.metrics.stability import CVS, cv_group, cv_group_by_chance, cv_sample, views

pytestmark = pytest.mark.usefixtures("every_interval")
NAN = float("nan")
MANY = np.random.default_rng(1).uniform(0.1, 1, (60, 3))
CASES = np.repeat(np.arange(20), 3)


def test_by_hand() -> None:
    # Means of the conditions: 0.4, 0.5, 0.6. sd sqrt(0.02/3) = 0.081650, mean 0.5: 16.3299 %. Rows:
    # (0.2, 0.4, 0.6) sd 0.163299, mean 0.4: 40.8248 %; (0.6, 0.6, 0.6): 0 %; on average 20.4124 %.
    rows, cases = [[0.2, 0.4, 0.6], [0.6, 0.6, 0.6]], ["a", "b"]
    assert cv_group(rows, cases)["value"] == pytest.approx(16.3299, abs=1e-4)
    assert cv_sample(rows, cases)["value"] == pytest.approx(20.4124, abs=1e-4)
    cancel = [[0.4, 0.6], [0.6, 0.4]]
    assert cv_group(cancel, cases)["value"] == 0
    assert cv_sample(cancel, cases)["value"] == pytest.approx(20)
    # A row of noughts has no CV of its own and counts in the means.
    zero = [[0.0, 0.0], [0.4, 0.6]]
    wanted = {"n_zero": 1, "n_missing": 0, "value": pytest.approx(20)}
    for cv, n in ((cv_sample, 1), (cv_group, 2)):
        found = cv(zero, cases)
        assert found | {"n": n} | wanted == found


def test_chance_is_what_shuffled_conditions_give() -> None:
    moved = MANY + [0, 0.3, 0.6]
    # every row moves with its condition
    assert cv_group_by_chance(moved, 300) < cv_group(moved, CASES)["value"]
    # One row, (0.4, 0.6): whichever way round, sd 0.1, mean 0.5.
    assert cv_group_by_chance([[0.4, 0.6]], 20) == pytest.approx(20)
    # Two rows: half of the shufflings cancel (0 %), half do not (20 %): the 95 % value is larger.
    assert cv_group_by_chance([[0.4, 0.6], [0.6, 0.4]], 200) == pytest.approx(20)
    rng = np.random.default_rng(0)
    drawn = [rng.permuted(MANY, axis=1).mean(axis=0) for _ in range(1000)]
    expected = np.quantile([100 * means.std() / means.mean() for means in drawn], 0.95)
    assert cv_group_by_chance(MANY, 1000) == pytest.approx(expected, rel=0.1)
    first, again, other = (cv_group_by_chance(MANY, 50, seed) for seed in (1, 1, 2))
    assert first == again != other


@each("metric", CVS)
def test_what_is_used_is_left_out_a_case_at_a_time(metric) -> None:
    rows = MANY.copy()
    rows[:3] = [[NAN, 0.2, 0.3], [0.0, 0.0, 0.0], [0.1, 0.2, NAN]]  # the first case: one row left
    used = ~np.isnan(rows).any(axis=1) & ((rows.mean(axis=1) > 0) | (metric == "cv_group"))
    (rows_of,) = views(metric, [rows], CASES)
    values = CVS[metric](rows_of)
    without = [rows[used & (case != CASES)] for case in np.unique(CASES[used])]
    found = {"cv_group": cv_group, "cv_sample": cv_sample}[metric](rows, CASES)
    if metric == "cv_group":
        means = np.array([kept.mean(axis=0) for kept in without])
        np.testing.assert_allclose(values[1:], 100 * means.std(axis=1) / means.mean(axis=1))
        assert np.isnan(found["low"]) and found["missing"] == NOT_HELD
    else:
        single = [(100 * kept.std(axis=1) / kept.mean(axis=1)).mean() for kept in without]
        np.testing.assert_allclose(values[1:], single)
        each = pd.Series(100 * rows[used].std(axis=1) / rows[used].mean(axis=1))
        most = each.groupby(CASES[used]).mean().max()
        ends = jackknife(found["value"], values[1:], (0, most))
        assert (found["low"], found["high"]) == pytest.approx(ends) and found["missing"] == ""
    assert found["n_missing"] == 2


def test_the_ratio_scale_holds_every_probability_and_no_method_that_can_be_negative() -> None:
    assert all(m.ratio for m in METHODS.values() if m.scale == "probability")
    records = [made.generation for made in random_records(50, seed=3)]
    ratio = [m for m in METHODS.values() if m.ratio]
    assert {m.name for m in ratio for g in records if m.score(g) < 0} == set()
    assert not METHODS["perplexity"].ratio and METHODS["deg"].ratio
