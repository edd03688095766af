"""07: what a confidence is worth as a chance, and when the model may abstain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression
from scipy.stats import rankdata

from trustlab.choices import choices
from trustlab.metrics import schema
from trustlab.metrics.calibration import CALIBRATION, cross_fitted
from trustlab.metrics.combined import run_of
from trustlab.metrics.estimate import (
    NAN,
    Metric,
    Rows,
    Statistic,
    at_least,
    estimate,
    rate,
)
from trustlab.metrics.run_tables import CHANCE, calibration_error, rows_of_methods
from trustlab.metrics.selective import RISK, risk_at
from trustlab.runs import formatted
from trustlab.runs.calibrator import Calibrator
from trustlab.runs.run import Run
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
    withheld_reason = at_least(min_per_class)
    lines: list[dict[str, Any]] = []
    for label, rows in rows_of_methods(answers, confidence):
        method = label["method"]
        for how in HOWS if method else ():
            if how == AS_GIVEN and scales.get(method) != "probability":
                continue
            for line in _calibrated(rows, how, withheld_reason(rows), n_folds, seed):
                lines.append({**label, "how": how, **line})
    return schema.table(lines, [*RUN, "method", "how"], [*CHANCE, "own_rows"])


def _calibrated(
    rows: Rows, how: str, few: str, n_folds: int, seed: int
) -> Iterator[dict[str, Any]]:
    """A line for each metric; ``few``: why nothing that needs both classes is measured."""
    why = ""
    if how != AS_GIVEN:
        why = few
        if not few:
            rows, why = _cross_fitted(rows, n_folds, seed)
    for name, metric in CALIBRATION.items():
        reason = why or ("" if name in WITHOUT_CLASSES else few)
        withheld = replace(metric, withheld=lambda _, reason=reason: reason)
        line = {"metric": name, **estimate(rows, withheld)}
        if name == "ece" and not reason:
            line |= calibration_error(rows)
        yield line


def _cross_fitted(rows: Rows, n_folds: int, seed: int) -> tuple[Rows, str]:
    """The rows with each confidence calibrated on other cases, and why one could not be."""
    probabilities = cross_fitted(
        rows["correct"], rows["confidence"], rows["case_id"], n_folds, seed
    )
    why = ""
    if np.isnan(probabilities).any():
        why = "one class only outside a fold"
        if rows.n_cases < n_folds:
            why = f"fewer than {n_folds} cases to calibrate on"
    calibrated = rows.asked.assign(confidence=NAN)
    calibrated.loc[rows.known, "confidence"] = probabilities
    return replace(rows, asked=calibrated), why


def of_cases(run: Run, names: Iterable[str]) -> Run:
    """A run's answers and confidences of these cases alone."""
    ids = list(names)
    answers = schema.pick(run.answers, case_id=ids)
    confidence = schema.pick(run.confidence, case_id=ids)
    return replace(run, answers=answers, confidence=confidence)


def carried_over(calibrator: Calibrator, run: Run) -> pd.DataFrame:
    """What becomes of a calibrator's promise in each model of a run, a row a model and data set;
    ``refused`` says why it is, and it is applied all the same."""
    parts = []
    for model in run.answers["model"].unique():
        applied = calibrator.apply(run, model=model, anyway=True)
        parts.append(applied.report.assign(refused="; ".join(applied.differences)))
    return pd.concat(parts, ignore_index=True)


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
            for confidence_at, line in _recalibrated(rows):
                point = {"confidence": confidence_at, "metric": "accuracy"}
                lines.append({**label, **point, **line})
    return schema.table(lines, [*RUN, "method", "confidence"], ["own_rows"])


def _recalibrated(rows: Rows) -> Iterator[tuple[float, dict[str, Any]]]:
    """Each confidence of a curve, and the line of the accuracy there."""
    if not rows.rarer:
        why = "right answers alone, or wrong ones alone"
        yield NAN, estimate(rows, Metric(rate("correct"), lambda _: why))
        return
    values, places = np.unique(rows["confidence"], return_inverse=True)
    spaced = np.linspace(0, len(values) - 1, MAX_POINTS)
    ranks = np.unique(spaced.round().astype(int))
    points = values[ranks]
    correct = rows["correct"].astype(np.float64)

    def fit(used: np.ndarray) -> np.ndarray:
        of_used = places[used]
        counts = np.bincount(of_used, minlength=len(values))
        n_correct = np.bincount(of_used, correct[used], len(values))
        occurs = counts > 0
        weights = counts[occurs]
        rates = n_correct[occurs] / weights
        fitted = isotonic_regression(rates, weights=weights)
        return np.interp(points, values[occurs], fitted.x)

    every_row = np.ones(len(rows), bool)
    curves = [fit(every_row)]
    if rows.n_cases > 1:
        for case in range(rows.n_cases):
            curves.append(fit(rows.case != case))
    for point, accuracies in zip(points, np.transpose(curves), strict=True):
        fitted = Statistic(lambda _, accuracies=accuracies: accuracies, "recalibration")
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
        ranks = rankdata(rows["confidence"])
        bin_of = np.minimum((bins * (ranks - 0.5) / len(rows)).astype(int), bins - 1)
        for number in np.unique(bin_of):
            part = rows.at(bin_of == number)
            line = {
                **label,
                "bin": int(number),
                "confidence": float(part["confidence"].mean()),
                "metric": "accuracy",
            }
            lines.append(line | estimate(part, rate("correct")))
    return schema.table(lines, [*RUN, "method", "bin", "confidence"], ["own_rows"])


COVERAGES = tuple(np.round(np.arange(0.05, 1.0001, 0.05), 2))
REFERENCES = {
    "oracle": lambda rows: rows["correct"],
    "any order": lambda rows: np.zeros(len(rows)),
}
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
    lines: list[dict[str, Any]] = []
    for run, labelled in groupby(rows_of_methods(answers, confidence), key=run_of):
        of_run = {
            label["method"]: (label["own_rows"], rows) for label, rows in labelled
        }
        chosen = {method: of_run[method] for method in methods if method in of_run}
        for line in _risk_curves(chosen, coverages, min_per_class):
            lines.append(run | line)
    more = ["n_shared", "n_rarer", "own_rows"]
    return schema.table(lines, [*RUN, "method", "role", "coverage"], more)


def _risk_curves(
    by_method: dict[str, tuple[bool, Rows]],
    coverages: Sequence[float],
    min_per_class: int,
) -> Iterator[dict[str, Any]]:
    """The curves of one model and data set, the two references first. ``by_method``: whether a
    method's rows are its own, not those shared, and the rows."""
    few = at_least(min_per_class)
    for own_rows, rows in by_method.values():
        if not own_rows and not few(rows):
            yield from _reference_curves(rows, coverages)
            break
    for name, (own_rows, rows) in by_method.items():
        about = {"method": name, "role": "method", "own_rows": own_rows}
        why = few(rows)
        if why:
            withheld = Metric(rate("correct"), lambda _, why=why: why)
            line = {**estimate(rows, withheld), "metric": "risk", "n_rarer": NAN}
            yield about | line
        else:
            for point in _risk_points(rows, coverages):
                yield about | point


def _reference_curves(
    shared: Rows, coverages: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """The curves of :data:`REFERENCES` on the rows that the methods share."""
    for name, order in REFERENCES.items():
        ordered = shared.asked.assign(confidence=NAN, bound=False)
        ordered.loc[shared.known, "confidence"] = order(shared)
        about = {"method": name, "role": "reference", "own_rows": False}
        for point in _risk_points(replace(shared, asked=ordered), coverages):
            yield about | point


def _risk_points(rows: Rows, coverages: Sequence[float]) -> Iterator[dict[str, Any]]:
    """One curve: at each coverage the risk among the answers there, with their counts."""
    correct = rows["correct"]
    confidence = rows.ranked
    ascending = np.sort(confidence)
    n = len(rows)
    all_rows = rows.asked
    rows = replace(rows, asked=all_rows.assign(wrong=1 - all_rows["correct"]))
    of_all = {
        "metric": "risk",
        "n_shared": n,
        "n_rarer": rows.rarer,
        "n_missing": len(all_rows) - n,
    }
    risks = risk_at(correct, confidence, coverages)
    for coverage, risk in zip(map(float, coverages), risks, strict=True):
        n_answered = max(int(np.ceil(round(coverage * n, 9))), 1)
        is_answered = rows.known.copy()
        is_answered[rows.known] = confidence >= ascending[n - n_answered]
        statistic = replace(RISK, values=lambda _, risk=risk: np.array([risk]))
        line = estimate(rows.at(is_answered), statistic)
        yield {"coverage": coverage, **line, **of_all}


def with_differences(table: pd.DataFrame, keys: Sequence[str], of: str) -> pd.DataFrame:
    """Values and differences of :func:`trustlab.combine` or :func:`trustlab.by_group` as text: a
    row for each of ``keys`` and each value of column ``of``, a column a model."""
    is_change = table["against"].ne("")
    minus = " minus " + table["against"]
    names = table[of] + minus.where(is_change, "")
    values = table["value"].mask(is_change, table["difference"])
    shown = table.assign(value=values)
    shown[of] = names
    rows = [*keys, of]
    wide = formatted.pivoted(shown, rows, "model", counted=True)
    return wide.fillna("–")
