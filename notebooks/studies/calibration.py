"""07: what a confidence is worth as a chance, and when the model may abstain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression
from scipy.stats import rankdata

from trustlab.choices import choices
from trustlab.metrics import schema
from trustlab.metrics.calibration import CALIBRATION, cross_fitted, ece_by_chance
from trustlab.metrics.estimate import (
    NAN,
    Metric,
    Rows,
    Statistic,
    at_least,
    estimate,
    rate,
)
from trustlab.metrics.run_tables import BAND, CHANCE, rows_of_methods
from trustlab.metrics.selective import RISK, risk_at
from trustlab.runs.workbench import Workbench


@choices
class Asked(Workbench):
    """The choices of notebook 07."""

    UNUSED = ("doctor", "patient", "reviewer", "wording", "medical_proxy")


setup = Asked.of
RUN = ["model", "dataset"]
AS_GIVEN = "as given"
HOWS = (AS_GIVEN, "isotonic")
WITHOUT_CLASSES = ("brier", "ece")
"""Metrics that can be had of answers that are all right, or all wrong."""
MAX_POINTS = 60
"""Most points of a recalibration curve: more could not be told apart in a small panel."""


def calibration_table(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    scales: Mapping[str, str],
    *,
    seed: int = 0,
    n_folds: int = 5,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """Brier score, its parts and ECE of every method, as given and calibrated.

    - A row a model, data set, method, ``how`` and metric of
      :data:`~trustlab.metrics.calibration.CALIBRATION`; beside "ece" what
      :func:`~trustlab.metrics.calibration.ece_by_chance` gives.
    - ``how``: "as given" only where ``scales`` (method -> scale) says 'probability'; "isotonic" is
      :func:`~trustlab.metrics.calibration.cross_fitted`.
    - What needs right and wrong answers is withheld below ``min_per_class`` of either.
    - ``ValueError`` as :func:`~trustlab.metrics.run_tables.rows_of_methods`.
    """
    few = at_least(min_per_class)
    lines: list[dict[str, Any]] = []
    for label, rows in rows_of_methods(answers, confidence):
        method = label["method"]
        for how in HOWS if method else ():
            if how != AS_GIVEN or scales.get(method) == "probability":
                made = _calibrated(rows, how, few(rows), n_folds, seed)
                lines += [label | {"how": how} | line for line in made]
    return schema.table(lines, [*RUN, "method", "how"], [*CHANCE, "own_rows"])


def _calibrated(
    rows: Rows, how: str, few: str, n_folds: int, seed: int
) -> Iterator[dict[str, Any]]:
    why = few if how != AS_GIVEN else ""
    if how != AS_GIVEN and not few:
        case, correct, sure = (rows[name] for name in ("case_id", "correct", "confidence"))
        prob = cross_fitted(correct, sure, case, n_folds, seed)
        if np.isnan(prob).any():
            short = f"fewer than {n_folds} cases to calibrate on"
            why = short if rows.n_cases < n_folds else "one class only outside a fold"
        asked = rows.asked.assign(confidence=NAN)
        asked.loc[rows.known, "confidence"] = prob
        rows = replace(rows, asked=asked)
    for name, metric in CALIBRATION.items():
        no = why or ("" if name in WITHOUT_CLASSES else few)
        found = estimate(rows, replace(metric, withheld=lambda _, no=no: no))
        if name == "ece" and not no:
            band = ece_by_chance(rows["correct"], rows["confidence"], rows.case)
            found |= dict(zip(BAND, band, strict=True))
        yield {"metric": name, **found}


def recalibration_curves(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    scales: Mapping[str, str],
) -> pd.DataFrame:
    """How often answers of each confidence are right, as a rising curve without bins.

    - A row a model, data set, method on the probability scale and distinct confidence (at most 60,
      evenly by rank); ``value`` is the isotonic fit of correct on confidence, straight between two.
      Dimitriadis, Gneiting & Jordan 2021.
    - ``low`` and ``high`` are pointwise, fitted anew without each case.
    - One row, with its reason, for a method without both right and wrong answers.
    """
    lines: list[dict[str, Any]] = []
    for label, rows in rows_of_methods(answers, confidence):
        if scales.get(label["method"]) == "probability":
            for point, found in _recalibrated(rows):
                lines.append({**label, "confidence": point, "metric": "accuracy", **found})
    return schema.table(lines, [*RUN, "method", "confidence"], ["own_rows"])


def _recalibrated(rows: Rows) -> Iterator[tuple[float, dict[str, Any]]]:
    if not rows.rarer:
        one_class = Metric(rate("correct"), lambda _: "right answers alone, or wrong ones alone")
        yield NAN, estimate(rows, one_class)
        return
    values, group = np.unique(rows["confidence"], return_inverse=True)
    spaced = np.linspace(0, len(values) - 1, MAX_POINTS).round().astype(int)
    picked = values[np.unique(spaced)]
    right = rows["correct"].astype(np.float64)

    def fit(kept: np.ndarray) -> np.ndarray:
        mass = np.bincount(group[kept], minlength=len(values))
        some = mass > 0
        rate = np.bincount(group[kept], right[kept], len(values))[some] / mass[some]
        return np.interp(picked, values[some], isotonic_regression(rate, weights=mass[some]).x)

    curves = [fit(np.ones(len(rows), bool))]
    if rows.n_cases > 1:
        curves += [fit(rows.case != one) for one in range(rows.n_cases)]
    for point, at in zip(picked, np.transpose(curves), strict=True):
        fitted = Statistic(lambda _, at=at: at, "recalibration")
        yield float(point), estimate(rows, fitted)


def reliability_table(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    scales: Mapping[str, str],
    bins: int = 10,
) -> pd.DataFrame:
    """Per method on the probability scale: the accuracy in equal-mass bins of its confidence.
    A row a model, data set, method and ``bin``: ``confidence`` is the bin's mean, ``value`` its
    accuracy. On the answers that the run's methods share, or ``own_rows``. Ties share a bin; bins
    stay as they are without a case."""
    lines: list[dict[str, Any]] = []
    for label, rows in rows_of_methods(answers, confidence):
        if scales.get(label["method"]) != "probability" or not len(rows):
            continue
        rows = rows.at(rows.known)
        rank = rankdata(rows["confidence"])
        bin_of = np.minimum((bins * (rank - 0.5) / len(rows)).astype(int), bins - 1)
        for b in np.unique(bin_of):
            part = rows.at(bin_of == b)
            place = {"bin": int(b), "confidence": float(part["confidence"].mean())}
            found = estimate(part, rate("correct"))
            lines.append({**label, **place, "metric": "accuracy", **found})
    return schema.table(lines, [*RUN, "method", "bin", "confidence"], ["own_rows"])


COVERAGES = tuple(np.round(np.arange(0.05, 1.0001, 0.05), 2))
REFERENCES = {"oracle": lambda rows: rows["correct"], "any order": lambda rows: np.zeros(len(rows))}
"""Curves to hold the methods' against -> what they order the answers by."""


def risk_coverage_table(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    methods: Sequence[str],
    *,
    coverages: Sequence[float] = COVERAGES,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """Risk (share of wrong answers among those given) at each coverage, a row a point of a curve.

    - Curves of ``methods`` in that order, on the ``n_shared`` rows of a model and data set that the
      run's methods share; one with ``own_rows`` on those that it has.
    - ``role`` is "method", or "reference": of "oracle" (right answers first) and "any order".
    - ``coverage`` is of the shared rows; ``n``: the answers given there, of ``n_cases`` cases
      (equal confidences at the end all counted in).
    - Below ``min_per_class`` right or wrong answers a row a method, and why there is no curve.
    """
    several: dict[tuple[str, str], dict[str, tuple[Rows, bool]]] = {}
    for label, rows in rows_of_methods(answers, confidence):
        of_run = several.setdefault((label["model"], label["dataset"]), {})
        of_run[label["method"]] = rows, label["own_rows"]
    lines: list[dict[str, Any]] = []
    for run, of in several.items():
        ordered = {method: of[method] for method in methods if method in of}
        label = dict(zip(RUN, run, strict=True))
        lines += [label | line for line in _curves(ordered, coverages, min_per_class)]
    more = ["n_shared", "n_rarer", "own_rows"]
    return schema.table(lines, [*RUN, "method", "role", "coverage"], more)


def _curves(
    several: dict[str, tuple[Rows, bool]], coverages: Sequence[float], least: int
) -> Iterator[dict]:
    """The curves of one model and data set, the two references first."""
    few = at_least(least)
    beside = [rows for rows, own in several.values() if not (own or few(rows))]
    for name, order in REFERENCES.items() if beside else ():
        asked = beside[0].asked.assign(confidence=NAN, bound=False)
        asked.loc[beside[0].known, "confidence"] = order(beside[0])
        about = {"method": name, "role": "reference", "own_rows": False}
        for point in _curve(replace(beside[0], asked=asked), coverages):
            yield about | point
    for name, (rows, own) in several.items():
        about = {"method": name, "role": "method", "own_rows": own}
        if why := few(rows):
            found = estimate(rows, Metric(rate("correct"), lambda _, why=why: why))
            yield about | found | {"metric": "risk", "n_rarer": NAN}
            continue
        for point in _curve(rows, coverages):
            yield about | point


def _curve(rows: Rows, coverages: Sequence[float]) -> Iterator[dict]:
    """One curve: at each coverage the risk among those given, with the counts of these."""
    correct = rows["correct"]
    sure = rows.ranked
    rows = replace(rows, asked=rows.asked.assign(wrong=1 - rows.asked["correct"]))
    of_all = {"metric": "risk", "n_shared": len(rows), "n_rarer": rows.rarer}
    of_all["n_missing"] = len(rows.asked) - len(rows)
    risks = risk_at(correct, sure, coverages)
    for coverage, risk in zip(map(float, coverages), risks, strict=True):
        last = max(int(np.ceil(round(coverage * len(rows), 9))), 1)
        given = rows.known.copy()
        given[rows.known] = sure >= np.sort(sure)[len(sure) - last]
        of = replace(RISK, values=lambda _, risk=risk: np.array([risk]))
        yield {"coverage": coverage} | estimate(rows.at(given), of) | of_all
