"""Near-ties are ties before anything is ranked, and only then: groups of one width, no chains."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from each import each
from sklearn.metrics import average_precision_score, roc_auc_score

from trustlab.metrics import spearman_permutation_p, ties
from trustlab.metrics.estimate import measure
from trustlab.metrics.run_tables import rows_of_methods
from trustlab.metrics.selective import SELECTIVE
from trustlab.metrics.stopping import stop_turns, thresholds_of
from trustlab.runs.measures import metrics_table

pytestmark = pytest.mark.usefixtures("every_interval")


OF_SPREAD = 3e-7
FEW = range(2, 21)
"""Numbers of values of which one far value moves the 5th or the 95th percentile."""


def assert_same(one: pd.Series, other: pd.Series) -> None:
    pd.testing.assert_series_equal(one, other, rtol=0, atol=1e-12)


def test_noise_in_confidences_moves_no_rank_metric() -> None:
    right, sure = a_law(300)
    near = sure + 1e-8 * np.random.default_rng(1).random(300)
    assert_same(ranked_metrics(right, sure), ranked_metrics(right, near))


def test_noise_moves_no_threshold() -> None:
    sure = np.array([[0.6, 0.8, 1.0], [0.2, 0.8, 0.8]])
    less = sure - OF_SPREAD * np.array([[0, 1, 1], [1, 0, 1]])
    assert stop_turns(less, 0.8).tolist() == stop_turns(sure, 0.8).tolist() == [1, 1]
    assert stop_turns(less - 1e-5, 0.8).tolist() == [2, 2]
    found = [thresholds_of(s) for s in (sure, less)]
    np.testing.assert_allclose(found[1], found[0], atol=1e-6)


def test_noise_orders_no_series() -> None:
    accuracy = [0.2, 0.4, 0.5, 0.6, 0.7]
    equal, near = [0.1, 0.3, 0.3, 0.5, 0.6], [0.1, 0.3 + 2e-7, 0.3, 0.5, 0.6]
    assert spearman_permutation_p(accuracy, near) == spearman_permutation_p(accuracy, equal)


def a_law(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Right answers (n,) and a confidence in [0, 1] that knows of them, a third of it in steps."""
    rng = np.random.default_rng(seed)
    right = rng.integers(0, 2, n)
    sure = np.clip(rng.normal(0.45 + 0.1 * right, 0.15), 0.01, 0.99)
    return right, np.where(np.arange(n) % 3, sure, np.round(sure, 1))


def one_method(right: np.ndarray, sure: np.ndarray, method: str = "asp") -> Any:
    """A run of one method, three levels a case."""
    n = len(right)
    key = pd.DataFrame({"case_id": [f"c{i // 3:05d}" for i in range(n)], "dataset": "d"})
    key = key.assign(level=np.tile([20, 60, 100], n // 3), model="m")
    given = key.assign(method=method, confidence=sure, bound="", missing="")
    return SimpleNamespace(answers=key.assign(answer="Flu", correct=right), confidence=given)


def ranked_metrics(right: np.ndarray, sure: np.ndarray, method: str = "asp") -> Any:
    """Values and intervals of every rank metric."""
    run = one_method(right, sure, method)
    whole = metrics_table(run, {})
    whole = whole[whole["metric"].isin(["auroc", "auprc", "spearman"])]
    of_methods = rows_of_methods(run.answers, run.confidence)
    area = pd.DataFrame(measure(((k, r) for k, r in of_methods if k["method"]), SELECTIVE))
    both = pd.concat([whole, area.assign(level="pooled")])
    assert len(both) == 2 * 5 + 1 + 2
    values: Any = both.set_index(["metric", "level"])[["value", "low", "high"]]
    return values.stack(future_stack=True)


@each("a, b", [(0, 1e-9), (1, 1e-3), (1, 1e3)])
def test_every_rank_metric_is_unchanged_by_origin_and_unit(a: float, b: float) -> None:
    right, sure = a_law(300)
    sure[:40] += 3e-8 * np.arange(40)  # near-ties, alike in every unit
    assert_same(ranked_metrics(right, sure), ranked_metrics(right, a + b * sure))


def test_a_tie_is_of_one_width_and_never_a_chain() -> None:
    chain = 0.5 + 4e-7 * np.arange(50)
    values = np.concatenate([np.zeros(20), chain, np.ones(20), [np.nan]])
    found = ties.tied(values)
    assert np.isnan(found[-1]) and (found[:20] == 0).all() and (found[-21:-1] == 1).all()
    assert 0 < (values - found)[20:-1].max() <= 1e-6
    assert len(np.unique(found[20:70])) == 17  # of three each
    assert (ties.tied(found)[:-1] == found[:-1]).all()
    order = np.random.default_rng(0).permutation(len(values))
    np.testing.assert_array_equal(ties.tied(values[order]), found[order])


@each("method", ["sequence_probability", "ccp"])
def test_a_product_of_probabilities_is_compared_by_its_logarithm(method: str) -> None:
    rng = np.random.default_rng(2)
    right = rng.integers(0, 2, 300)
    sure = 10.0 ** -rng.uniform(0, 20 - 5 * right)
    found = ranked_metrics(right, sure, method)
    assert found["auroc", "pooled", "value"] == pytest.approx(roc_auc_score(right, sure), abs=1e-12)
    expected = average_precision_score(right, sure)
    assert found["auprc", "pooled", "value"] == pytest.approx(expected, abs=1e-12)
    sure[:5] = 0
    none = ranked_metrics(right, sure, method)
    assert none["auroc", "pooled", "value"] == pytest.approx(roc_auc_score(right, sure), abs=1e-12)


@each("far", [1e9, -1e9, 1e3, -50.0])
def test_one_far_value_ties_no_others(far: float) -> None:
    rng = np.random.default_rng(4)
    for n in (*FEW, 21, 40, 300):
        others = np.sort(rng.choice(100_000, n - 1, replace=False)) / 1e5
        values = np.append(others, far)
        np.testing.assert_array_equal(ties.tied(values), values)
        if n < 21:
            assert ties.width(values) < 1e-5
            equal = np.append(np.full(n - 1, 0.5), far)
            assert not ties.reaches(equal, 0.501)[0]


@each("far", [[], [1e3]])
def test_few_values_that_differ_by_noise_are_tied_beside_a_far_one(far: list[float]) -> None:
    for n in range(4, 19):
        values = np.concatenate([np.linspace(0.1, 0.9, n), [0.1 + 1e-9, 0.9 - 1e-9], far])
        assert len(np.unique(ties.tied(values))) == n + len(far)


@each("n", [2, 3, 4, 6, 12, 20, 21, 50])
def test_width_follows_the_unit_and_not_the_order(n: int) -> None:
    values = np.random.default_rng(n).lognormal(size=n)
    for unit in (2.0**-20, 2.0**7):  # a power of two moves the last place alike
        expected = pytest.approx(unit * ties.width(values), rel=1e-12, abs=0)
        assert ties.width(unit * values) == expected
    assert ties.width(-values[::-1]) == pytest.approx(ties.width(values), rel=1e-12, abs=0)


@each("n", [21, 22, 60])
def test_many_values_have_the_width_of_their_percentiles(n: int) -> None:
    values = np.random.default_rng(n).lognormal(size=n)
    low, high = np.quantile(values, [0.05, 0.95])
    assert ties.width(values) == pytest.approx(1e-6 * (high - low), rel=1e-12, abs=0)
    values = np.concatenate([[0.5], np.ones(n - 2), [3.0]])  # no distance of percentiles
    assert ties.width(values) == pytest.approx(2.5e-6, rel=1e-12, abs=0)


@each(
    ("values", "spread"),
    [
        ([0.2], 0.0),
        ([0.2, 0.7], 0.0),
        ([0.2, 0.3, 0.7], 0.1),
        ([0.2, 0.6, 0.7], 0.1),
        ([0.2, 0.3, 0.6, 0.7], 0.4),
    ],
)
def test_few_values_have_the_width_of_all_but_one(values: list[float], spread: float) -> None:
    least = 16 * np.spacing(max(values))
    assert ties.width(values) == pytest.approx(max(1e-6 * spread, least), rel=1e-9, abs=0)
