"""Asks whether several confidences together rank answers better than the best of them alone.

Both sides are cross-fitted by case: what is predicted, or chosen, for a case rests on others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import logit, ndtri

from trustlab.metrics.calibration import CALIBRATION, ece_by_chance
from trustlab.metrics.discrimination import area, concordance
from trustlab.metrics.estimate import Line, Metric, Rows, at_least, estimate, groups
from trustlab.metrics.paired import RUN, compared, corrected
from trustlab.metrics.run_tables import BAND, CHANCE, ROW, checked_answers, joined
from trustlab.metrics.schema import rows_where
from trustlab.metrics.ties import tied
from trustlab.records import PRODUCTS

N_FOLDS = 5
MIN_CASES = 30
"""Cases with a right, and with a wrong answer, below which nothing is combined."""
CLIP = 1e-3
"""A probability enters as its logit, no nearer to 0 or 1 than this."""
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""Inverse strengths of the ridge, one of which the training folds choose."""
COMBINED = "combined"
PLAIN = "combined_without_indicators"
BEST = "best_in_training"
INDICATORS = {COMBINED: True, PLAIN: False}
"""What is fitted -> whether a missing value has an indicator."""
FIXED = "the interval takes the fits as fixed"
LEVEL = "information_level"
WITHIN = area("stratum")
FITTED = replace(WITHIN, kind="combined")
"""AUROC of pairs of one level and fold: of a method, and of what was fitted or chosen."""
TOO_FEW = at_least(10)
WEIGHT = ["predictor", "weight", "ridge"]
VALUE = ["case_id", "dataset", "level", "model", "fold", "method", "confidence"]


class Combined(NamedTuple):
    """What :func:`combine` gives, a table each.

    - ``table``: AUROC (pairs of one level and fold) of each method alone, of the two combinations
      and of the best in training, Brier score and ECE of the combinations, and their differences
      ``against`` the best in training.
    - ``confidence``: an answer a row for :data:`COMBINED`, :data:`PLAIN` and :data:`BEST`, with its
      ``fold``, of the last its method's ranks; compare values of one fold only.
    - ``weights``: of each fold's standardised predictors, and the ridge (scikit-learn's C); of
      :data:`BEST` the method that was chosen.
    """

    table: pd.DataFrame
    confidence: pd.DataFrame
    weights: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Judged:
    """The read and graded answers of a model and data set, n of them.

    - ``table``: case_id level correct fold stratum, a row each.
    - ``logits``: method -> logits of its probabilities, (n,); ``scores``: method -> its values with
      near-ties made ties, (n,). NaN where missing; methods without any value are left out.
    """

    table: pd.DataFrame
    logits: dict[str, np.ndarray]
    scores: dict[str, np.ndarray]

    @cached_property
    def rows(self) -> Rows:
        """All answers, without a confidence."""
        return Rows(self.table, np.ones(len(self.table), bool))

    @property
    def why_refused(self) -> str:
        """Why nothing is combined, or ''."""
        if self.rows.rarer_cases < MIN_CASES:
            words = "cases with right answers, or with wrong ones: nothing is combined"
            return f"fewer than {MIN_CASES} {words}"
        if len(self.scores) < 2:
            return "fewer than two methods with a value: nothing is combined"
        return ""

    def with_values(self, confidence: np.ndarray) -> Rows:
        """All answers with these values, (n,)."""
        return replace(self.rows, asked=self.table.assign(confidence=confidence))

    def ranks(self, method: str) -> np.ndarray:
        """The ranks of a method's values from 0, equal ones alike, -1 where missing, (n,)."""
        values = self.scores[method]
        has_value = ~np.isnan(values)
        ranks = np.full(len(values), -1.0)
        ranks[has_value] = np.unique(values[has_value], return_inverse=True)[1]
        return ranks


def combine(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    methods: Sequence[str],
    scales: Mapping[str, str],
    *,
    seed: int = 0,
) -> Combined:
    """Logistic regression of correctness on the values of ``methods``, cross-fitted by case.

    - Five folds by a hash of seed, data set and case. The ridge is chosen within the training folds
      by log loss, each of them left out once. The level is no predictor.
    - Probabilities (``scales``: method -> scale) enter as logits clipped at :data:`CLIP`, scores as
      normal scores of their ranks in the training folds, all standardised. A missing value is the
      training median, in ``combined`` with an indicator.
    - ``best_in_training``: in each fold the method with the highest level-stratified AUROC of the
      others. Of a method alone a missing value is its least sure, counted in ``n_missing``.
    - Below :data:`MIN_CASES` cases with a right, or with a wrong answer, nothing is combined, and
      the table says so. All answers that were read and graded count, whatever they lack.
    - ``ValueError``: fewer than two methods, one twice or without a row, or the level among them;
      as :func:`.joined`.
    """
    _check_methods(methods, confidence)
    checked = checked_answers(answers)
    is_chosen = confidence["method"].isin(list(methods))
    chosen = joined(checked, rows_where(confidence, is_chosen))
    lines: list[Line] = []
    values: list[pd.DataFrame] = []
    weights: list[Line] = []
    for run, run_answers in groups(checked, RUN):
        is_mine = chosen[RUN].eq(pd.Series(run)).all(axis=1)
        wide = chosen[is_mine].pivot(index=ROW, columns="method", values="confidence")
        judged = _judged(run_answers, wide, scales, seed)
        left_out = [name for name in methods if name not in judged.scores]
        about = {
            **run,
            "n_methods": len(judged.scores),
            "left_out": ", ".join(left_out),
        }
        if judged.why_refused:
            lines.append({**about, **_refused(judged)})
            continue
        fitted = {}
        for method, has_indicators in INDICATORS.items():
            fitted[method], lines_of_folds = cross_fit(judged, has_indicators)
            weights.extend({**run, "method": method, **line} for line in lines_of_folds)
        fitted[BEST], chosen_in_folds = best_in_training(judged)
        weights.extend({**run, "method": BEST, **line} for line in chosen_in_folds)
        lines.extend({**about, **line} for line in _lines(judged, fitted))
        for method, column in fitted.items():
            values.append(judged.table.assign(**run, method=method, confidence=column))
    keys = [*RUN, "method", "against", "level"]
    table = corrected(lines, keys, ["n_methods", "left_out", "n_rarer", *CHANCE], RUN)
    return Combined(
        table,
        pd.concat(values)[VALUE] if values else pd.DataFrame(columns=VALUE),
        pd.DataFrame(weights, columns=[*RUN, "method", "fold", *WEIGHT]),
    )


def _check_methods(methods: Sequence[str], confidence: pd.DataFrame) -> None:
    """``ValueError`` for fewer than two methods, one that comes twice or has no row, or the
    level."""
    names = list(methods)
    if isinstance(methods, str) or len(set(names)) < max(2, len(names)):
        raise ValueError(
            f"methods must be two or more, each once; received {methods!r}"
        )
    present = [name for name in confidence["method"].unique() if name != LEVEL]
    absent = [name for name in names if name not in present]
    if absent:
        raise ValueError(f"{absent} cannot be combined; this run allows {present}")


def fold_of(dataset: str, case_id: str, seed: int) -> int:
    """The fold of a case, from 0: a hash of its name."""
    digest = sha256(f"{seed}\n{dataset}\n{case_id}".encode()).digest()
    return int.from_bytes(digest[:8]) % N_FOLDS


def _judged(
    run_answers: Any, wide: pd.DataFrame, scales: Mapping[str, str], seed: int
) -> Judged:
    """The answers of a run that were read and graded. ``wide``: a column a method by case and
    level."""
    unjudged = (
        run_answers["failed"] | run_answers["ungraded"] | ~run_answers["readable"]
    )
    table = run_answers[~unjudged]
    folds = []
    for dataset, case_id in zip(table["dataset"], table["case_id"], strict=True):
        folds.append(fold_of(str(dataset), str(case_id), seed))
    table = table[[*ROW, "correct"]].assign(fold=folds)
    table["stratum"] = N_FOLDS * table["level"] + table["fold"]
    aligned = wide.reindex(pd.MultiIndex.from_frame(table[ROW]))
    logits = {}
    scores = {}
    for method in aligned.columns:
        values = aligned[method].to_numpy(float)
        if np.isnan(values).all():
            continue
        scores[method] = tied(values, method in PRODUCTS)
        if scales.get(method) == "probability":
            logits[method] = logit(np.clip(values, CLIP, 1 - CLIP))
    return Judged(table, logits, scores)


def _refused(judged: Judged) -> Line:
    """The line of a run in which nothing is combined."""
    unused = Rows(judged.table, ~judged.rows.known, none=judged.why_refused)
    line = estimate(unused, Metric(WITHIN, TOO_FEW))
    return {**_about(COMBINED, "auroc"), **line}


def _about(method: str, metric: str, level: str = "within", against: str = "") -> Line:
    return {"method": method, "against": against, "level": level, "metric": metric}


def cross_fit(
    judged: Judged, has_indicators: bool, ridges: Sequence[float] = RIDGES
) -> tuple[np.ndarray, list[Line]]:
    """The chance of each answer being right, (n,), from the answers of the other folds, and the
    weights of each fold. ``has_indicators``: of missing values; ``ridges``: as scikit-learn's C,
    rising."""
    # Imported here: it takes time at the command line's start, and few runs combine.
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import StandardScaler

    correct = judged.table["correct"].to_numpy()
    fold = judged.table["fold"].to_numpy()
    chances = np.empty(len(correct))
    lines: list[Line] = []
    for left_out in np.unique(fold):
        train = fold != left_out
        predictors = _predictors(judged, train)
        imputer = SimpleImputer(
            strategy="median", add_indicator=has_indicators, keep_empty_features=True
        ).fit(predictors[train])
        complete = imputer.transform(predictors)
        scaled = StandardScaler().fit(complete[train]).transform(complete)
        model = _ridge_fit(scaled[train], correct[train], fold[train], ridges)
        chances[~train] = model.predict_proba(scaled[~train])[:, 1]
        names = imputer.get_feature_names_out(list(judged.scores))
        for name, weight in zip(names, model.coef_[0], strict=True):
            line = {"fold": left_out, "predictor": name, "weight": weight}
            lines.append({**line, "ridge": model.C})
    return chances, lines


def _ridge_fit(
    predictors: np.ndarray,
    correct: np.ndarray,
    fold: np.ndarray,
    ridges: Sequence[float],
) -> Any:
    """scikit-learn's logistic regression of answers (n,) with the ridge that has the least log loss
    where each ``fold`` (n,) is left out; the strongest of equal ones."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss
    from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict

    losses = []
    models = []
    for ridge in ridges:
        model = LogisticRegression(C=ridge, solver="newton-cholesky", max_iter=1000)
        chances = cross_val_predict(
            model,
            predictors,
            correct,
            groups=fold,
            cv=LeaveOneGroupOut(),
            method="predict_proba",
        )
        losses.append(log_loss(correct, chances))
        models.append(model)
    best = models[int(np.argmin(losses))]
    return best.fit(predictors, correct)


def _predictors(judged: Judged, train: np.ndarray) -> np.ndarray:
    """What the regression reads, (n, methods): logits, or normal scores of ranks in ``train``."""
    columns = []
    for method, values in judged.scores.items():
        column = judged.logits.get(method)
        if column is None:
            column = normal_scores(values, train)
        columns.append(column)
    return np.column_stack(columns)


def normal_scores(values: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Normal scores of values (n,): of the share of those in ``train`` that are smaller, equal ones
    counting half, at least half a value from either end. NaN stays."""
    in_training = values[train]
    rising = np.sort(in_training[~np.isnan(in_training)])
    if not len(rising):
        return np.full(len(values), np.nan)
    below = np.searchsorted(rising, values, side="left")
    up_to = np.searchsorted(rising, values, side="right")
    share = (below + up_to) / (2 * len(rising))
    least = 0.5 / len(rising)
    scores = ndtri(np.clip(share, least, 1 - least))
    return np.where(np.isnan(values), np.nan, scores)


def best_in_training(judged: Judged) -> tuple[np.ndarray, list[Line]]:
    """In each fold the ranks, (n,), of the method that is best in the others, and its name."""
    fold = judged.table["fold"].to_numpy()
    values = np.empty(len(fold))
    lines: list[Line] = []
    for left_out in np.unique(fold):
        train = fold != left_out
        part = judged.rows.at(train)
        level = np.unique(part["level"], return_inverse=True)[1]
        areas = {}
        for method in judged.scores:
            ranks = judged.ranks(method)[train]
            areas[method] = concordance(part["correct"], ranks, part.case, level)[0]
        best = max(areas, key=lambda method: areas[method])
        values[~train] = judged.ranks(best)[~train]
        lines.append({"fold": left_out, "predictor": best})
    return values, lines


def _lines(judged: Judged, fitted: Mapping[str, np.ndarray]) -> Iterator[Line]:
    """AUROC of each method and of what was fitted, calibration, and the differences."""
    ranking = Metric(WITHIN, TOO_FEW)
    for method in judged.scores:
        line = estimate(judged.with_values(judged.ranks(method)), ranking)
        line["n_missing"] = int(np.isnan(judged.scores[method]).sum())
        yield {**_about(method, "auroc"), **line, "chance": 0.5}
    rows_by_method = {}
    for method, values in fitted.items():
        rows = judged.with_values(values)
        rows_by_method[method] = rows
        line = estimate(rows, Metric(FITTED, TOO_FEW), note=FIXED)
        yield {**_about(method, "auroc"), **line, "chance": 0.5}
    for method in INDICATORS:
        rows = rows_by_method[method]
        brier = estimate(rows, CALIBRATION["brier"], note=FIXED)
        yield {**_about(method, "brier", "pooled"), **brier}
        ece = estimate(rows, CALIBRATION["ece"])
        band = ece_by_chance(rows["correct"], rows["confidence"], rows.case)
        yield {
            **_about(method, "ece", "pooled"),
            **ece,
            **dict(zip(BAND, band, strict=True)),
        }
        pair = replace(rows, reference=rows_by_method[BEST])
        change = compared(pair, FITTED, withheld=TOO_FEW, note=FIXED)
        yield {**_about(method, "auroc", against=BEST), **change}
