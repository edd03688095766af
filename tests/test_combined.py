"""Several methods combined: a second program of the fits, the folds, and what is refused."""

from __future__ import annotations

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
    N_FOLDS,
    PLAIN,
    RIDGES,
    combine,
    fold_of,
    normal_scores,
)

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

    return minimize(loss, np.zeros(x.shape[1] + 1), method="BFGS", options={"gtol": 1e-7}).x


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


def by_hand(wide: pd.DataFrame, fold: np.ndarray, y: np.ndarray, indicators: bool) -> np.ndarray:
    """The out-of-fold chances, plainly."""
    found = np.zeros(len(y))
    for left_out in range(N_FOLDS):
        train = fold != left_out
        columns = [np.log(np.clip(wide["p"], 1e-3, 0.999) / (1 - np.clip(wide["p"], 1e-3, 0.999)))]
        columns += [scores_by_hand(wide[name].to_numpy(), train) for name in ("s", "t")]
        full = []
        for column in map(np.array, columns):
            full.append(np.where(np.isnan(column), np.nanmedian(column[train]), column))
        if indicators:
            full.append(wide["s"].isna().to_numpy(float))
        x = np.column_stack(full)
        x = (x - x[train].mean(axis=0)) / x[train].std(axis=0)
        losses = []
        for strength in RIDGES:
            total = 0.0
            for inner in set(fold[train]):
                fit = ridge_fit(x[train & (fold != inner)], y[train & (fold != inner)], strength)
                p = chance(x[fold == inner], fit)
                total -= np.log(np.where(y[fold == inner] == 1, p, 1 - p)).sum()
            losses.append(total)
        best = RIDGES[int(np.argmin(losses))]
        found[~train] = chance(x[~train], ridge_fit(x[train], y[train], best))
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
    fold = np.array([fold_of("d", case, 0) for case in answers["case_id"]])
    stratum = list(zip(answers["level"], fold, strict=True))
    for method, indicators in ((COMBINED, True), (PLAIN, False)):
        expected = by_hand(wide, fold, y, indicators)
        mine = found.confidence[found.confidence["method"] == method]
        assert list(mine["fold"]) == list(fold)
        assert mine["confidence"].to_numpy() == pytest.approx(expected, abs=1e-4)
        line = tl.pick(found.table, method=method, metric="auroc", against="").iloc[0]
        assert line["value"] == pytest.approx(area(expected, y, stratum), abs=1e-9)
        brier = tl.pick(found.table, method=method, metric="brier").iloc[0]
        assert brier["value"] == pytest.approx(np.mean((expected - y) ** 2), abs=1e-4)
    best = np.zeros(len(y))
    chosen = tl.pick(found.weights, method=BEST).set_index("fold")["predictor"]
    ranked = wide.fillna(-99).to_numpy()
    for left_out in range(N_FOLDS):
        train = fold != left_out
        areas = []
        for column in ranked.T:
            areas.append(area(column[train], y[train], list(answers["level"][train])))
        assert chosen[left_out] == ["p", "s", "t"][int(np.argmax(areas))]
        best[~train] = ranked[~train, int(np.argmax(areas))]
    line = tl.pick(found.table, method=BEST, metric="auroc").iloc[0]
    assert line["value"] == pytest.approx(area(best, y, stratum), abs=1e-9)
    gap = tl.pick(found.table, method=COMBINED, against=BEST).iloc[0]
    assert gap["reference"] == line["value"] and gap["low"] < gap["difference"] < gap["high"]
    assert "fits as fixed" in gap["missing"]
    alone = tl.pick(found.table, method="s", metric="auroc").iloc[0]
    assert alone["n_missing"] == wide["s"].isna().sum()


def test_nothing_of_a_fold_is_in_its_own_values() -> None:
    answers, confidence = made()
    before = combine(answers, confidence, ["p", "s"], SCALES).confidence
    fold = np.array([fold_of("d", case, 0) for case in answers["case_id"]])
    turned = answers["correct"].where(fold != 2, 1 - answers["correct"])
    after = combine(answers.assign(correct=turned), confidence, ["p", "s"], SCALES).confidence
    is_two = (before["fold"] == 2).to_numpy()
    same = before["confidence"].to_numpy() == after["confidence"].to_numpy()
    assert (same | before["confidence"].isna().to_numpy())[is_two].all()
    assert not same[~is_two].all()


def test_the_fold_of_a_case_hangs_on_its_name_alone() -> None:
    folds = [fold_of("d", f"c{i}", 0) for i in range(2000)]
    assert set(folds) == set(range(N_FOLDS))
    assert np.bincount(folds).min() > 300
    assert folds[:50] != [fold_of("e", f"c{i}", 0) for i in range(50)]


def test_normal_scores_know_only_the_training_values() -> None:
    values = np.array([3.0, 1.0, 2.0, 2.0, np.nan, 99.0, -99.0])
    train = np.array([True, True, True, True, True, False, False])
    found = normal_scores(values, train)
    expected = norm.ppf([3.5 / 4, 0.5 / 4, 0.5, 0.5, np.nan, 3.5 / 4, 0.5 / 4])
    assert found == pytest.approx(expected, nan_ok=True)
    assert np.isnan(normal_scores(values, np.isnan(values))).all()


@each(("n", "right", "words"), [(40, 0.98, "30 cases"), (29, 0.5, "30 cases")])
def test_too_few_cases_are_refused_in_the_table(n: int, right: float, words: str) -> None:
    answers, confidence = made(n, right=right)
    found = combine(answers, confidence, ["p", "s"], SCALES)
    assert len(found.table) == 1 and words in found.table["missing"].iloc[0]
    assert found.table["value"].isna().all() and not len(found.confidence)


def test_a_method_without_any_value_is_left_out_by_name() -> None:
    answers, confidence = made()
    is_t = confidence["method"] == "t"
    confidence.loc[is_t, ["confidence", "missing"]] = [np.nan, "lost"]
    found = combine(answers, confidence, ["p", "s", "t"], SCALES)
    assert set(found.table["left_out"]) == {"t"} and set(found.table["n_methods"]) == {2}
    one = combine(answers, confidence, ["p", "t"], SCALES)
    assert "two methods" in one.table["missing"].iloc[0]


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
