"""How far is each method's confidence from a probability, as it is and after calibration on other cases?

Tables for the benchmark: pure functions of a run's ``answers`` and ``confidence``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression

from trustlab.experiments.method_rows import MethodRows, method_rows
from trustlab.metrics.calibration import brier_parts_weighted, cross_fitted, ece_weighted
from trustlab.metrics.estimate import bounded_interval, without_excess
from trustlab.metrics.ties import tied

AS_GIVEN = "as given"
FITTED = ("isotonic", "platt")
MEASURES = ("brier", "miscalibration", "discrimination", "uncertainty", "ece")
CHUNK = 250
"""Bootstrap draws handled at once: keeps the working arrays near the processor's cache."""
COLUMNS = ["model", "dataset", "method", "how", "metric", "value", "low", "high", "n", "n_cases", "n_missing", "missing"]
CURVE = ["model", "dataset", "method", "confidence", "probability", "low", "high", "n", "n_cases", "missing"]
MAX_POINTS = 60
"""Most points of a recalibration curve: more could not be told apart in a small panel."""


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
    """Brier score, its parts and ECE of every method, as given and calibrated: a row a model, data set, method, how and measure.

    ``how`` is "as given" (only where ``scales``, method -> scale, says 'probability'), "isotonic" or "platt": fitted on the
    other folds of cases (:func:`trustlab.metrics.calibration.cross_fitted`). ``metric`` is "brier" = "miscalibration" -
    "discrimination" + "uncertainty", or "ece" (15 equal-mass bins). ``low`` and ``high``: 95 % percentile bootstrap over cases;
    the calibrated probabilities are held fixed, while the isotonic recalibration behind the parts and the bins of ECE are
    formed anew in each draw. A draw repeats cases, which makes miscalibration, discrimination and ECE larger than in the sample
    by chance alone: that mean excess is taken off both ends (at least 0 remains). What needs right and wrong answers is
    withheld below ``min_per_class`` of either; ``missing`` says why a value or an interval is NaN. Raises ``ValueError`` as
    :func:`~trustlab.experiments.method_rows.method_rows`, and for an "as given" confidence outside [0, 1].
    """
    rows: list[dict] = []
    for asked in method_rows(answers, confidence):
        hows = [AS_GIVEN, *FITTED] if scales.get(asked.method) == "probability" else [*FITTED]
        known = asked.at(asked.present)
        weights = asked.weights(n_draws, seed) if len(asked.case) else np.ones((1, 0))
        for how in hows:
            found = _measured(known, how, weights, n_folds, seed, min_per_class)
            for measure, (value, low, high, why) in found.items():
                why = asked.no_value() if not len(known.case) else why
                reason = "; ".join([*([why] if why else []), *asked.notes()])
                numbers = {"value": value, "low": low, "high": high}
                rows.append({**asked.label, "how": how, "metric": measure, **numbers, **asked.counts(), "missing": reason})
    return pd.DataFrame(rows, columns=pd.Index(COLUMNS))


def recalibration_curves(
    answers: pd.DataFrame, confidence: pd.DataFrame, scales: Mapping[str, str], *, n_draws: int = 500, seed: int = 0
) -> pd.DataFrame:
    """How often answers of each confidence are right, as a rising curve without bins (Dimitriadis, Gneiting & Jordan 2021).

    A row a model, data set, method on the probability scale and distinct confidence (at most 60, evenly by rank, ends
    included): ``probability`` is the isotonic fit of correct on confidence over the same rows, straight between two
    confidences; ``low`` and ``high`` a pointwise 95 % percentile bootstrap band over cases, fitted anew in each draw, NaN
    below 10 cases and where the draws are all alike. One row, with its reason, for a method without both right and wrong
    answers. Raises ``ValueError`` as :func:`calibration_table`.
    """
    rows: list[dict] = []
    for asked in method_rows(answers, confidence):
        if scales.get(asked.method) == "probability":
            rows += [{**asked.label, **row} for row in _curve(asked, n_draws, seed)]
    return pd.DataFrame(rows, columns=pd.Index(CURVE))


Measured = dict[str, tuple[float, float, float, str]]
"""Measure -> value, low, high, reason."""


def _measured(rows: MethodRows, how: str, weights: np.ndarray, n_folds: int, seed: int, least: int) -> Measured:
    nothing = float("nan")
    rarer = min(int(rows.correct.sum()), int((1 - rows.correct).sum()))
    withheld = f"fewer than {max(least, 1)} correct or wrong"
    if len(rows.case) == 0:
        return dict.fromkeys(MEASURES, (nothing, nothing, nothing, ""))
    if how != AS_GIVEN and rarer < max(least, 1):
        return dict.fromkeys(MEASURES, (nothing, nothing, nothing, withheld))
    prob = rows.confidence
    if how != AS_GIVEN:
        prob = cross_fitted(rows.correct, rows.confidence, rows.case, how, n_folds, seed)
        if np.isnan(prob).any():
            few = len(np.unique(rows.case)) < n_folds
            why = f"fewer than {n_folds} cases to calibrate on" if few else "one class only outside a fold"
            return dict.fromkeys(MEASURES, (nothing, nothing, nothing, why))
    try:
        once = _values(rows.correct, prob, np.ones((1, len(prob)), int))
    except ValueError as error:
        raise ValueError(f"method {rows.method!r} has scale 'probability': {error}") from error
    draws = {name: np.concatenate(parts) for name, parts in _chunked(rows.correct, prob, weights).items()}
    found: Measured = {}
    for name in MEASURES:
        value = float(once[name][0])
        if rarer < max(least, 1) and name not in ("brier", "ece"):
            found[name] = (nothing, nothing, nothing, withheld)
            continue
        drawn = draws[name] if name in ("brier", "uncertainty") else without_excess(draws[name], value)
        found[name] = (value, *bounded_interval(drawn, rows.case))
    return found


def _chunked(correct: np.ndarray, prob: np.ndarray, weights: np.ndarray) -> dict[str, list[np.ndarray]]:
    parts: dict[str, list[np.ndarray]] = {name: [] for name in MEASURES}
    for start in range(0, len(weights), CHUNK):
        for name, values in _values(correct, prob, weights[start : start + CHUNK]).items():
            parts[name].append(values)
    return parts


def _values(correct: np.ndarray, prob: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Every measure in each weighting, (B,)."""
    parts = brier_parts_weighted(correct, prob, weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = weights @ (np.clip(prob, 0, 1) - correct) ** 2 / weights.sum(axis=1)
    return dict(zip(MEASURES, [score, *parts.T, ece_weighted(correct, prob, weights)], strict=True))


def _curve(asked: MethodRows, n_draws: int, seed: int) -> Iterator[dict]:
    rows = asked.at(asked.present)
    counts = {"n": len(rows.case), "n_cases": len(np.unique(rows.case))}
    if len(np.unique(rows.correct)) < 2:
        why = "right answers alone, or wrong ones alone" if counts["n"] else asked.no_value()
        yield {**dict.fromkeys(("confidence", "probability", "low", "high"), float("nan")), **counts, "missing": why}
        return
    values, group = np.unique(tied(rows.confidence), return_inverse=True)
    picked = values[np.unique(np.linspace(0, len(values) - 1, MAX_POINTS).round().astype(int))]
    sure = rows.correct.astype(float)

    def fit(weight: np.ndarray) -> np.ndarray:
        mass = np.bincount(group, weights=weight, minlength=len(values))
        held = mass > 0
        if not held.any():
            return np.full(len(picked), np.nan)
        rate = np.bincount(group, weights=weight * sure, minlength=len(values))[held] / mass[held]
        return np.interp(picked, values[held], isotonic_regression(rate, weights=mass[held]).x)

    draws = np.stack([fit(weight) for weight in asked.weights(n_draws, seed)])
    for i, (value, height) in enumerate(zip(picked, fit(np.ones(len(sure))), strict=True)):
        low, high, note = bounded_interval(draws[:, i], rows.case)
        yield {"confidence": float(value), "probability": float(height), "low": low, "high": high, **counts, "missing": note}
