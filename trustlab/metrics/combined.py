"""Asks whether several confidences together rank answers better than the best of them alone.

Both sides are cross-fitted by case: what is fitted, or chosen, for a case rests on others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import logit, ndtri

from trustlab.metrics import schema
from trustlab.metrics.discrimination import STRATIFIED, area
from trustlab.metrics.estimate import Labelled, Line, Metric, Rows, estimate
from trustlab.metrics.paired import RUN, compared, corrected
from trustlab.metrics.run_tables import KEYS, missing_least_sure, rows_of_methods

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
LEVEL = "information_level"
WITHIN = area("stratum")
"""AUROC of the pairs of one level and fold."""
FITTED = replace(WITHIN, kind="combined", error_factor=np.sqrt(2))
"""The same of what is cross-fitted. Without any signal, the products of two folds' errors stand in
the AUROC of both: the variance of the mean is twice that of independent folds."""
FIXED = "the interval takes the fits as fixed, its standard error times √2"


class Combined(NamedTuple):
    """What :func:`combine` gives, a table each.

    - ``table``: AUROC (pairs of one level and fold) of each method alone, of :data:`COMBINED`,
      :data:`PLAIN` (without indicators) and :data:`BEST`, and the differences ``against`` the best.
    - ``confidence``: a row an answer, with its ``fold``, for each of the three. Compare values of
      one fold only; those of :data:`BEST` are ranks.
    """

    table: pd.DataFrame
    confidence: pd.DataFrame


class Judged(NamedTuple):
    """The read and graded answers of a model and data set, n of them.

    - ``rows``: the answers, with ``fold`` and ``stratum`` (of level and fold).
    - ``ranked``: method -> the answers with the ranks of its values, -1 where missing; none of
      them where all are.
    - ``logits``: method -> logits of its probabilities (n,), NaN where missing.
    """

    rows: Rows
    ranked: dict[str, Rows]
    logits: dict[str, np.ndarray]

    @property
    def why_refused(self) -> str:
        """Why nothing is combined, or ''."""
        if self.rows.rarer_cases < MIN_CASES:
            return (
                f"nothing is combined: fewer than {MIN_CASES} cases with right answers, "
                "or with wrong ones"
            )
        if sum(len(rows) > 0 for rows in self.ranked.values()) < 2:
            return "nothing is combined: fewer than two methods with a value"
        return ""


def combine(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    methods: Sequence[str],
    scales: Mapping[str, str],
) -> Combined:
    """Logistic regression of correctness on the values of ``methods``, cross-fitted by case.

    - Five folds by a hash of the case. The ridge is chosen within the training folds by
      mean log loss, each of them left out once. The level is no predictor.
    - Probabilities (``scales``: method -> scale) enter as logits clipped at :data:`CLIP`, scores as
      normal scores of their ranks in the training folds, all standardised. A missing value is the
      training median, in ``combined`` with an indicator.
    - ``best_in_training``: in each fold the method with the highest level-stratified AUROC in the
      others. Of a method alone a missing value is its least sure, counted in ``n_missing``.
    - Intervals take the fits as fixed. Their standard error has the factor √2, which is exact
      without any signal and conservative with signal.
    - Below :data:`MIN_CASES` cases with a right, or with a wrong answer, nothing is combined, and
      the table says so. All answers that were read and graded count, whatever they lack.
    - ``ValueError``: fewer than two methods, one without a row, or the level among them;
      as :func:`.rows_of_methods`.
    """
    if len(set(methods)) < 2 or LEVEL in methods:
        raise ValueError(
            f"methods must be two or more, no {LEVEL!r}; received {methods!r}"
        )
    chosen = schema.pick(confidence, method=list(methods))
    fold = np.array([fold_of(str(case)) for case in answers["case_id"]])
    stratum = N_FOLDS * answers["level"].astype(int) + fold
    table = answers.assign(fold=fold, stratum=stratum)
    lines: list[Line] = []
    values = []
    for run, labelled in groupby(rows_of_methods(table, chosen), key=run_of):
        judged = _judged(labelled, scales)
        fitted = {}
        for method, column in cross_fit(judged).items():
            own = judged.rows.asked.assign(method=method, confidence=column)
            values.append(own[[*KEYS, "fold", "method", "confidence"]])
            fitted[method] = replace(judged.rows, asked=own)
        about = {**run, "level": "within", "metric": "auroc"}
        lines.extend({**about, **line} for line in _lines(judged, fitted))
    keys = [*RUN, "method", "against", "level"]
    measured = corrected(lines, keys, ["n_rarer"], RUN)
    return Combined(measured, pd.concat(values))


def run_of(labelled: tuple[Line, Rows]) -> Line:
    """The model and the data set of labelled rows (:func:`.rows_of_methods`)."""
    return {name: labelled[0][name] for name in RUN}


def fold_of(case: str) -> int:
    """The fold of a case, from 0: a hash of its id."""
    digest = sha256(case.encode()).digest()
    return int.from_bytes(digest[:8]) % N_FOLDS


def _judged(labelled: Labelled, scales: Mapping[str, str]) -> Judged:
    """The answers of a run that were read and graded; ``labelled``: of :func:`.rows_of_methods`."""
    (_, answers), *of_methods = labelled
    is_judged = answers.known & answers.all("readable")
    ranked = {}
    logits = {}
    for label, rows in of_methods:
        method = label["method"]
        part = rows.at(is_judged)
        ranked[method] = missing_least_sure(part)
        if scales.get(method) == "probability":
            chances = part.all("confidence").astype(float)
            clipped = np.clip(chances, CLIP, 1 - CLIP)
            logits[method] = logit(clipped)
    return Judged(answers.at(is_judged), ranked, logits)


def cross_fit(judged: Judged) -> dict[str, np.ndarray]:
    """What the other folds give each answer, (n,) each: its chance of being right by the
    regression with indicators of missing values and without, and its rank by their best method.
    NaN where nothing is combined."""
    correct = judged.rows["correct"]
    fold = judged.rows["fold"]
    values = {name: np.full(len(fold), np.nan) for name in (COMBINED, PLAIN, BEST)}
    if judged.why_refused:
        return values
    for left_out in np.unique(fold):
        train = fold != left_out
        test = ~train
        predictors = _predictors(judged, train)
        for name in (COMBINED, PLAIN):
            model = _ridge_fit(
                predictors[train], correct[train], fold[train], name == COMBINED
            )
            values[name][test] = model.predict_proba(predictors[test])[:, 1]
        values[BEST][test] = _best(judged, train)["confidence"][test]
    return values


def _ridge_fit(
    predictors: np.ndarray, correct: np.ndarray, fold: np.ndarray, has_indicators: bool
) -> Any:
    """The logistic regression of answers (n,) on predictors (n, methods) with the ridge that has
    the least mean log loss where each ``fold`` (n,) is left out; the strongest of equal ones."""
    # Imported here: they take time at the command line's start, and few runs combine.
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss
    from sklearn.model_selection import GridSearchCV, PredefinedSplit
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    imputer = SimpleImputer(
        strategy="median", add_indicator=has_indicators, keep_empty_features=True
    )
    regression = LogisticRegression(solver="newton-cholesky")
    model = make_pipeline(imputer, StandardScaler(), regression)

    def score(fitted: Any, predictors: np.ndarray, correct: np.ndarray) -> float:
        chances = fitted.predict_proba(predictors)
        return -log_loss(correct, chances, labels=[0, 1])

    ridges = {"logisticregression__C": RIDGES}
    search = GridSearchCV(model, ridges, scoring=score, cv=PredefinedSplit(fold))
    return search.fit(predictors, correct)


def _predictors(judged: Judged, train: np.ndarray) -> np.ndarray:
    """What the regression reads, (n, methods): logits, or normal scores of ranks in ``train``."""
    columns = []
    for method, rows in judged.ranked.items():
        column = judged.logits.get(method)
        if column is None:
            column = normal_scores(rows.all("confidence"), train)
        columns.append(column)
    return np.column_stack(columns)


def normal_scores(ranks: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Normal scores of ranks (n,): of the share of those in ``train`` that are smaller, equal ones
    counting half, at least half a value from either end. NaN where a rank is below 0: missing."""
    is_missing = ranks < 0
    rising = np.sort(ranks[train & ~is_missing])
    n = max(len(rising), 1)
    n_below = np.searchsorted(rising, ranks)
    n_up_to = np.searchsorted(rising, ranks, side="right")
    n_smaller = (n_below + n_up_to) / 2
    n_inside = np.clip(n_smaller, 0.5, n - 0.5)
    scores = ndtri(n_inside / n)
    scores[is_missing] = np.nan
    return scores


def _best(judged: Judged, train: np.ndarray) -> Rows:
    """The answers with the ranks of the method that is best in ``train``, the first of equal
    ones."""
    columns = list(judged.ranked.values())
    areas = []
    for rows in columns:
        values = STRATIFIED["auroc"](rows.at(train))
        areas.append(values[0])
    best = np.argmax(np.nan_to_num(areas))
    return columns[best]


def _lines(judged: Judged, fitted: Mapping[str, Rows]) -> Iterator[Line]:
    """AUROC of each method and of what was fitted, and the differences from the best."""
    for method, rows in judged.ranked.items():
        line = estimate(rows, WITHIN)
        is_missing = rows.all("confidence") < 0
        line["n_missing"] = int(is_missing.sum())
        yield {"method": method, "against": "", **line}
    metric = Metric(FITTED, lambda rows: judged.why_refused)
    for method, rows in fitted.items():
        line = estimate(rows, metric, note=FIXED)
        yield {"method": method, "against": "", **line}
    for method in (COMBINED, PLAIN):
        pair = replace(fitted[method], reference=fitted[BEST])
        line = compared(pair, FITTED, withheld=metric.withheld, note=FIXED)
        yield {"method": method, "against": BEST, **line}
