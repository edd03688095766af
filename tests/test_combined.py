"""Several methods combined: a second program of the fits, the folds, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from each import each
from saying import saying
from scipy.optimize import minimize
from scipy.stats import norm

import trustlab as tl
from trustlab.metrics.combined import (
    BEST,
    COMBINED,
    FITTED,
    N_FOLDS,
    PLAIN,
    RIDGES,
    WITHIN,
    combine,
    fold_of,
    normal_scores,
)
from trustlab.metrics.estimate import Rows, difference, jackknife

pytestmark = pytest.mark.usefixtures("every_interval")
LEVELS = (1, 100)
SCALES = {"p": "probability", "s": "score", "t": "score"}


def made(n: int = 70, seed: int = 3, right: float = 0.5) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Answers of n cases at two levels, and three methods of which the second lacks values."""
    rng = np.random.default_rng(seed)
    n_rows = n * len(LEVELS)
    keys: Any = {
        "case_id": np.repeat([f"c{i}" for i in range(n)], len(LEVELS)),
        "dataset": "d",
        "level": np.tile(LEVELS, n),
        "model": "m",
    }
    correct = (rng.random(n_rows) < right).astype(float)
    answers = pd.DataFrame({**keys, "answer": "x", "truth": "t", "correct": correct})
    signal = rng.normal(size=(3, n_rows)) + correct
    values = {
        "p": 1 / (1 + np.exp(-signal[0])),
        "s": np.round(signal[1], 1),
        "t": -(signal[2] ** 2),
    }
    values["s"][rng.random(n_rows) < 0.1] = np.nan
    parts = []
    for method, column in values.items():
        missing = np.where(np.isnan(column), "lost", "")
        rows: Any = {**keys, "method": method, "confidence": column, "bound": ""}
        parts.append(pd.DataFrame({**rows, "missing": missing}))
    return answers, pd.concat(parts, ignore_index=True)


def ridge_fit(x: np.ndarray, y: np.ndarray, strength: float) -> np.ndarray:
    """Weights and intercept that minimise C times the log loss plus half the squared weights."""

    def loss(weights: np.ndarray) -> float:
        margins = (2 * y - 1) * (x @ weights[:-1] + weights[-1])
        return strength * np.logaddexp(0, -margins).sum() + weights[:-1] @ weights[:-1] / 2

    def slope(weights: np.ndarray) -> np.ndarray:
        errors = strength * (chance(x, weights) - y)
        return np.append(x.T @ errors + weights[:-1], errors.sum())

    start = np.zeros(x.shape[1] + 1)
    return minimize(loss, start, jac=slope, method="BFGS", options={"gtol": 1e-7}).x


def chance(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-(x @ weights[:-1] + weights[-1])))


def scores_by_hand(values: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Value by value: the share of the training values below, equal ones half."""
    others = [v for v in values[train] if not np.isnan(v)]
    found = []
    for value in values:
        if np.isnan(value):
            found.append(np.nan)
            continue
        below = sum(v < value for v in others) + sum(v == value for v in others) / 2
        share = min(max(below / len(others), 0.5 / len(others)), 1 - 0.5 / len(others))
        found.append(norm.ppf(share))
    return np.array(found)


def fitted(
    columns: list[np.ndarray], y: np.ndarray, train: np.ndarray, test: np.ndarray, strength: float
) -> np.ndarray:
    """The chances of the answers in ``test``, with medians, scale and fit of those in ``train``."""
    full = []
    for column in columns:
        full.append(np.where(np.isnan(column), np.nanmedian(column[train]), column))
    x = np.column_stack(full)
    spread = x[train].std(axis=0)
    x = (x - x[train].mean(axis=0)) / np.where(spread > 0, spread, 1)
    return chance(x[test], ridge_fit(x[train], y[train], strength))


def by_hand(wide: pd.DataFrame, fold: np.ndarray, y: np.ndarray, indicators: bool) -> np.ndarray:
    """The out-of-fold chances, plainly."""
    found = np.zeros(len(y))
    for left_out in range(N_FOLDS):
        train = fold != left_out
        p = np.clip(wide["p"].to_numpy(), 1e-3, 0.999)
        columns = [np.log(p / (1 - p))]
        columns += [scores_by_hand(wide[name].to_numpy(), train) for name in ("s", "t")]
        if indicators:
            columns.append(wide["s"].isna().to_numpy(float))
        losses = []
        for strength in RIDGES:
            total = 0.0
            for inner in set(fold[train]):
                test = fold == inner
                chances = fitted(columns, y, train & ~test, test, strength)
                total -= np.log(np.where(y[test] == 1, chances, 1 - chances)).mean()
            losses.append(total)
        best = RIDGES[int(np.argmin(losses))]
        found[~train] = fitted(columns, y, train, ~train, best)
    return found


def area(values: np.ndarray, y: np.ndarray, stratum: list[Any]) -> float:
    """The share of pairs of one stratum whose right answer is surer, pair by pair."""
    won = 0.0
    n_pairs = 0
    for i in np.flatnonzero(y == 1):
        for j in np.flatnonzero(y == 0):
            if stratum[i] == stratum[j]:
                n_pairs += 1
                won += (values[i] > values[j]) + (values[i] == values[j]) / 2
    return won / n_pairs


def test_fits_folds_and_areas_by_a_second_program() -> None:
    answers, confidence = made()
    found = combine(answers, confidence, ["p", "s", "t"], SCALES)
    wide = confidence.pivot(index=["case_id", "level"], columns="method", values="confidence")
    wide = wide.reindex(pd.MultiIndex.from_frame(answers[["case_id", "level"]]))
    y = answers["correct"].to_numpy()
    fold = np.array([fold_of(case) for case in answers["case_id"]])
    stratum = list(zip(answers["level"], fold, strict=True))
    for method, indicators in ((COMBINED, True), (PLAIN, False)):
        expected = by_hand(wide, fold, y, indicators)
        mine = found.confidence[found.confidence["method"] == method]
        assert list(mine["fold"]) == list(fold)
        assert mine["confidence"].to_numpy() == pytest.approx(expected, abs=5e-4)
        line = tl.pick(found.table, method=method, metric="auroc", against="").iloc[0]
        assert line["value"] == pytest.approx(area(expected, y, stratum), abs=1e-9)
    best = np.zeros(len(y))
    ranked = wide.fillna(-99).to_numpy()
    for left_out in range(N_FOLDS):
        train = fold != left_out
        areas = []
        for column in ranked.T:
            areas.append(area(column[train], y[train], list(answers["level"][train])))
        best[~train] = ranked[~train, int(np.argmax(areas))]
    line = tl.pick(found.table, method=BEST, metric="auroc").iloc[0]
    assert line["value"] == pytest.approx(area(best, y, stratum), abs=1e-9)
    gap = tl.pick(found.table, method=COMBINED, against=BEST).iloc[0]
    assert gap["reference"] == line["value"] and gap["low"] < gap["difference"] < gap["high"]
    assert "fits as fixed" in gap["missing"] and "√2" in gap["missing"]
    alone = tl.pick(found.table, method="s", metric="auroc").iloc[0]
    assert alone["n_missing"] == wide["s"].isna().sum()


def test_the_standard_error_of_what_is_fitted_is_sqrt_two_times_the_jackknifes() -> None:
    answers, confidence = made()
    chosen = confidence[confidence["method"] == "p"].reset_index(drop=True)
    table = answers.assign(confidence=chosen["confidence"], stratum=answers["level"])
    rows = Rows.of(table, "confidence")
    pair = replace(rows, reference=Rows.of(table.assign(confidence=answers["level"]), "confidence"))
    for of_rows, statistic, plain in (
        (rows, FITTED, WITHIN),
        (pair, difference(FITTED), difference(WITHIN)),
    ):
        found = jackknife(statistic, statistic(of_rows), of_rows)
        expected = jackknife(plain, plain(of_rows), of_rows)
        assert found.standard_error == pytest.approx(2**0.5 * expected.standard_error)
        assert found.low < expected.low and found.high > expected.high


def test_nothing_of_a_fold_is_in_its_own_values() -> None:
    answers, confidence = made()
    before = combine(answers, confidence, ["p", "s"], SCALES).confidence
    fold = np.array([fold_of(case) for case in answers["case_id"]])
    turned = answers["correct"].where(fold != 2, 1 - answers["correct"])
    after = combine(answers.assign(correct=turned), confidence, ["p", "s"], SCALES).confidence
    is_two = (before["fold"] == 2).to_numpy()
    same = before["confidence"].to_numpy() == after["confidence"].to_numpy()
    assert (same | before["confidence"].isna().to_numpy())[is_two].all()
    assert not same[~is_two].all()


def test_the_fold_of_a_case_hangs_on_its_name_alone() -> None:
    folds = [fold_of(f"c{i}") for i in range(2000)]
    assert set(folds) == set(range(N_FOLDS))
    assert np.bincount(folds).min() > 300


def test_normal_scores_know_only_the_training_values() -> None:
    ranks = np.array([3.0, 1.0, 2.0, 2.0, -1.0, 99.0, 0.0])
    train = np.array([True, True, True, True, True, False, False])
    found = normal_scores(ranks, train)
    expected = norm.ppf([3.5 / 4, 0.5 / 4, 0.5, 0.5, np.nan, 3.5 / 4, 0.5 / 4])
    assert found == pytest.approx(expected, nan_ok=True)
    of_none = normal_scores(ranks, ranks < 0)
    assert np.isnan(of_none[4]) and (of_none[ranks >= 0] == 0).all()


@each(("n", "right"), [(40, 0.98), (29, 0.5)])
def test_too_few_cases_are_refused_in_the_table(n: int, right: float) -> None:
    answers, confidence = made(n, right=right)
    found = combine(answers, confidence, ["p", "s"], SCALES)
    fitted = tl.pick(found.table, method=[COMBINED, PLAIN, BEST])
    assert fitted["missing"].str.contains("fewer than 30 cases").all()
    assert fitted[["value", "low", "difference"]].isna().all(axis=None)
    assert found.confidence["confidence"].isna().all()


def test_a_method_without_any_value_has_its_reason_and_changes_nothing() -> None:
    answers, confidence = made()
    without = combine(answers, confidence, ["p", "s"], SCALES)
    is_t = confidence["method"] == "t"
    confidence.loc[is_t, ["confidence", "missing"]] = [np.nan, "lost"]
    found = combine(answers, confidence, ["p", "s", "t"], SCALES)
    line = tl.pick(found.table, method="t").iloc[0]
    assert np.isnan(line["value"]) and "lost" in line["missing"]
    assert line["n_missing"] == len(answers)
    assert found.confidence["confidence"].to_numpy() == pytest.approx(
        without.confidence["confidence"].to_numpy()
    )
    one = combine(answers, confidence, ["p", "t"], SCALES)
    refused = tl.pick(one.table, method=COMBINED, against="").iloc[0]
    assert "two methods" in refused["missing"] and np.isnan(refused["value"])


@each("methods", ["p", ["p"], ["p", "p"], ["p", "nobody"], ["p", "information_level"]])
def test_what_cannot_be_combined_is_refused(methods: Any) -> None:
    answers, confidence = made()
    level = confidence[confidence["method"] == "p"].assign(method="information_level")
    both = pd.concat([confidence, level])
    with pytest.raises(ValueError, match=saying("'p'")):
        combine(answers, both, methods, SCALES)


def test_a_run_combines_by_the_registrys_scales() -> None:
    answers, confidence = made()
    names = {"p": "asp", "s": "mc_se", "t": "perplexity"}
    run = tl.Run(answers, confidence.replace({"method": names}), pd.DataFrame(), {})
    found = tl.combine(run, ["asp", "mc_se"])
    expected = combine(answers, confidence, ["p", "s"], SCALES)
    assert list(found.confidence["confidence"].dropna()) == pytest.approx(
        list(expected.confidence["confidence"].dropna())
    )
