"""How far is each method's confidence from a probability, as it is and after calibration?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression
from scipy.stats import rankdata

from trustlab.metrics import schema
from trustlab.metrics.calibration import CALIBRATION, cross_fitted
from trustlab.metrics.estimate import NAN, Metric, Rows, at_least, estimate, grouped, mean
from trustlab.metrics.run_tables import rows_of_methods
from trustlab.metrics.ties import tied

RUN = ["model", "dataset"]
AS_GIVEN = "as given"
HOWS = (AS_GIVEN, "isotonic", "platt")
WITHOUT_CLASSES = ("brier", "ece")
"""Metrics that can be had of answers that are all right, or all wrong."""
MAX_POINTS = 60
"""Most points of a recalibration curve: more could not be told apart in a small panel."""
ONE_CLASS = "right answers alone, or wrong ones alone"


def calibration_table(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    scales: Mapping[str, str],
    *,
    n_draws: int = 500,
    seed: int = 0,
    n_folds: int = 5,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """Brier score, its parts and ECE of every method, as given and calibrated.

    - A row a model, data set, method, ``how`` and metric of
      :data:`~trustlab.metrics.calibration.CALIBRATION` ("brier" = "miscalibration" -
      "discrimination" + "uncertainty"; "ece" has 15 equal-mass bins).
    - ``how``: "as given" only where ``scales`` (method -> scale) says 'probability'; "isotonic"
      and "platt" are fitted on the other folds of cases
      (:func:`~trustlab.metrics.calibration.cross_fitted`) and held fixed in the draws, while the
      recalibration behind the parts and the bins of ECE are formed anew in each.
    - What needs right and wrong answers is withheld below ``min_per_class`` of either.
    - ``ValueError`` as :func:`~trustlab.metrics.run_tables.rows_of_methods`, and for an "as given"
      confidence outside [0, 1].
    """
    few = at_least(min_per_class)
    lines: list[dict[str, Any]] = []
    for label, rows in rows_of_methods(answers, confidence, n_draws, seed):
        method = label["method"]
        for how in HOWS if method else ():
            if how != AS_GIVEN or scales.get(method) == "probability":
                try:
                    made = list(_calibrated(rows, how, few(rows), n_folds, seed))
                except ValueError as error:
                    raise ValueError(
                        f"method {method!r} has scale 'probability': {error}"
                    ) from error
                lines += [label | {"how": how} | line for line in made]
    return schema.table(lines, [*RUN, "method", "how"])


def _calibrated(
    rows: Rows, how: str, few: str, n_folds: int, seed: int
) -> Iterator[dict[str, Any]]:
    why = few if how != AS_GIVEN else ""
    if how != AS_GIVEN and not few:
        case, correct, sure = (rows[name] for name in ("case_id", "correct", "confidence"))
        prob = cross_fitted(correct, sure, case, how, n_folds, seed)
        if np.isnan(prob).any():
            short = f"fewer than {n_folds} cases to calibrate on"
            why = short if rows.n_cases < n_folds else "one class only outside a fold"
        asked = rows.asked.assign(confidence=NAN)
        asked.loc[rows.known, "confidence"] = prob
        rows = replace(rows, asked=asked)
    for name, metric in CALIBRATION.items():
        no = why or ("" if name in WITHOUT_CLASSES else few)
        yield {"metric": name, **estimate(rows, replace(metric, withheld=lambda _, no=no: no))}


def recalibration_curves(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    scales: Mapping[str, str],
    *,
    n_draws: int = 500,
    seed: int = 0,
) -> pd.DataFrame:
    """How often answers of each confidence are right, as a rising curve without bins.

    - A row a model, data set, method on the probability scale and distinct confidence (at most 60,
      evenly by rank, ends included); ``value`` is the isotonic fit of correct on confidence over
      the same rows, straight between two confidences. Dimitriadis, Gneiting & Jordan 2021.
    - ``low`` and ``high`` are pointwise, fitted anew in each draw.
    - One row, with its reason, for a method without both right and wrong answers.
    """
    lines: list[dict[str, Any]] = []
    for label, rows in rows_of_methods(answers, confidence, n_draws, seed):
        if scales.get(label["method"]) == "probability":
            for point, found in _curve(rows):
                lines.append({**label, "confidence": point, "metric": "accuracy", **found})
    return schema.table(lines, [*RUN, "method", "confidence"])


def _curve(rows: Rows) -> Iterator[tuple[float, dict[str, Any]]]:
    if not rows.rarer:
        yield NAN, estimate(rows, Metric(mean("correct"), lambda _: ONE_CLASS))
        return
    values, group = np.unique(tied(rows["confidence"]), return_inverse=True)
    spaced = np.linspace(0, len(values) - 1, MAX_POINTS).round().astype(int)
    picked, right = values[np.unique(spaced)], rows["correct"].astype(np.float64)

    def fit(weight: np.ndarray) -> np.ndarray:
        mass = np.bincount(group, weight, len(values))
        held = mass > 0
        if not held.any():
            return np.full(len(picked), NAN)
        rate = np.bincount(group, weight * right, len(values))[held] / mass[held]
        return np.interp(picked, values[held], isotonic_regression(rate, weights=mass[held]).x)

    curve = rows.over(lambda weights: np.stack([fit(weight) for weight in weights], axis=1))
    for point, drawn in zip(picked, curve, strict=True):
        yield float(point), estimate(rows, lambda _, drawn=drawn: drawn)


def reliability_table(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    scales: Mapping[str, str],
    bins: int = 10,
    n_draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Per method on the probability scale: the accuracy in equal-mass bins of its confidence.

    A row a model, method and ``bin``: ``confidence`` is the bin's mean, ``value`` its accuracy.
    Ties share a bin, so there may be fewer than ``bins`` (ECE has 15); bins are held fixed in the
    draws. ``ValueError`` for less than one bin.
    """
    if bins < 1:
        raise ValueError(f"bins must be at least 1; received {bins}")
    known: Any = judged(answers, confidence)
    probable = [name for name, scale in scales.items() if scale == "probability"]
    known = known[known["method"].isin(probable)].drop(columns="bound")
    lines: list[dict[str, Any]] = []
    for label, rows in grouped(
        known, ["model", "method"], "confidence", n_draws=n_draws, seed=seed
    ):
        rank = rankdata(tied(rows["confidence"]))
        bin_of = np.minimum((bins * (rank - 0.5) / len(rows)).astype(int), bins - 1)
        for b in np.unique(bin_of):
            part = rows.at(bin_of == b)
            place = {"bin": int(b), "confidence": float(part["confidence"].mean())}
            lines.append(
                {**label, **place, "metric": "accuracy", **estimate(part, mean("correct"))}
            )
    return schema.table(lines, ["model", "method", "bin", "confidence"])


def judged(answers: pd.DataFrame, confidence: pd.DataFrame) -> pd.DataFrame:
    """The confidence rows that have a value, each with whether its answer was correct.

    Without those whose answer could not be had (``correct`` NaN): it is neither right nor wrong.
    """
    present = confidence[confidence["confidence"].notna()]
    keys = ["case_id", "dataset", "level", "model"]
    table = present.merge(answers[[*keys, "correct"]], on=keys, how="left", validate="many_to_one")
    return table.dropna(subset="correct").reset_index(drop=True)
