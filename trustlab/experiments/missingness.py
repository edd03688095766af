"""How much of each method is missing, and how far could that move what is said of it?

A table for the benchmark: a pure function of a run's ``answers`` and ``confidence``. What each end means is told in
:mod:`trustlab.metrics.bounds`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from trustlab.experiments.method_rows import MethodRows, method_rows, most_frequent
from trustlab.metrics.bounds import (
    Bounds,
    accuracy_bounds,
    auprc_bounds,
    auroc_bounds,
    brier_bounds,
    mean_confidence_bounds,
)
from trustlab.metrics.calibration import brier, ece
from trustlab.metrics.correlation import pearson, spearman
from trustlab.metrics.discrimination import auprc, auroc
from trustlab.metrics.run_tables import checked_answers

COLUMNS = ["model", "dataset", "method", "metric", "n", "n_asked", "coverage", "value", "worst", "best", "missing"]
NO_ENDS = "a score has no ends, so no worst and best"
ONLY_RANGE = "no sharp bound is computed: only the metric's range"


def missingness_table(
    answers: pd.DataFrame, confidence: pd.DataFrame, scales: Mapping[str, str], *, min_per_class: int = 10
) -> pd.DataFrame:
    """Coverage of every method, and each metric on what there is beside its worst and best were the missing had.

    A row a model, data set, method and metric, all levels together; method '' for the accuracy of
    the answers themselves. ``coverage`` = ``n`` / ``n_asked``, the share of answers asked for that
    have a value (a grade, for accuracy). ``value`` is the metric on those ``n`` rows, all levels
    pooled (AUROC and AUPRC withheld below ``min_per_class`` right or wrong answers). ``worst`` and
    ``best`` are its ends (of a mean confidence the lowest and highest) over every way of filling in
    the others: sharp, but for ECE and the correlations over levels, where nothing sharper than the
    metric's range is computed, and for scores that are no probabilities (``scales``, method ->
    scale), whose mean has no ends. An unreadable answer is wrong, with a missing confidence; a
    failed or ungraded one may be either. A ``value`` need not lie halfway, and no end is an
    interval's. ``missing`` says why a value is missing most often, or a number is NaN. Raises
    ``ValueError`` as :func:`~trustlab.experiments.method_rows.method_rows`.
    """
    runs: dict[tuple[str, str], list[dict]] = {}
    listed: Any = checked_answers(answers).groupby(["model", "dataset"], sort=False)
    for (model, dataset), part in listed:
        runs[str(model), str(dataset)] = [_accuracy({"model": str(model), "dataset": str(dataset), "method": ""}, part)]
    for asked in method_rows(answers, confidence):
        is_probability = scales.get(asked.method) == "probability"
        runs[asked.model, asked.dataset] += _method(asked, is_probability, max(min_per_class, 1))
    return pd.DataFrame([row for rows in runs.values() for row in rows], columns=pd.Index(COLUMNS))


def _accuracy(label: Mapping[str, str], part: pd.DataFrame) -> dict:
    unknown = (part["failed"] | part["ungraded"]).to_numpy(bool)
    correct = np.where(unknown, np.nan, part["correct"].to_numpy(float))
    failed = int(part["failed"].to_numpy(bool).sum())
    told = [f"{failed} missing"] if failed else []
    told += [f"{int(unknown.sum()) - failed} ungraded"] if unknown.sum() > failed else []
    value = float(np.nanmean(correct)) if not unknown.all() else float("nan")
    return _row(label, "accuracy", ~unknown, value, accuracy_bounds(correct), ", ".join(told))


def _method(asked: MethodRows, is_probability: bool, least: int) -> list[dict]:
    known = asked.at(asked.present)
    n, lost = len(known.case), len(asked.case) - len(known.case)
    why = f"{lost} missing, most often: {most_frequent(asked.why[~asked.present])}" if lost else ""
    why = why if n else asked.no_value()
    n_right = int(known.correct.sum())
    ranked = min(n_right, n - n_right) >= least
    nothing = Bounds(float("nan"), float("nan"))

    def value(measure: Callable[..., float], *arrays: np.ndarray) -> float:
        return float(measure(*arrays)) if n else float("nan")

    rows: list[dict] = []

    def add(metric: str, found: float, bounds: Bounds, note: str = "") -> None:
        note = note if n or note in (NO_ENDS, ONLY_RANGE) else ""  # without a value, that alone is why
        reason = "; ".join(part for part in (note, why) if part)
        rows.append(_row(asked.label, metric, asked.present, found, bounds, reason))

    if is_probability:
        add("mean_confidence", value(np.mean, known.confidence), mean_confidence_bounds(asked.confidence))
    else:
        mean = value(np.mean, known.confidence)
        add("mean_confidence", mean, nothing if lost else Bounds(mean, mean), NO_ENDS if lost else "")
    few = "" if ranked else f"fewer than {least} correct or wrong"
    for metric, measure, limits in (("auroc", auroc, auroc_bounds), ("auprc", auprc, auprc_bounds)):
        found = value(measure, known.correct, known.confidence) if ranked else float("nan")
        add(metric, found, limits(asked.correct, asked.confidence), few)
    if is_probability:
        add("brier", value(brier, known.correct, known.confidence), brier_bounds(asked.correct, asked.confidence))
        off = value(ece, known.correct, known.confidence)
        add("ece", off, Bounds(1.0, 0.0) if lost else Bounds(off, off), ONLY_RANGE if lost else "")
    at_level = [known.level == q for q in np.unique(known.level)]
    accuracy, confidence = ([float(column[at].mean()) for at in at_level] for column in (known.correct, known.confidence))
    for metric, measure in (("pearson", pearson), ("spearman", spearman)):
        found = float(measure(accuracy, confidence))
        note = ONLY_RANGE if lost else "" if found == found else "fewer than 3 levels, or one side is the same at every level"
        add(metric, found, Bounds(-1.0, 1.0) if lost else Bounds(found, found), note)
    return rows


def _row(label: Mapping[str, str], metric: str, present: np.ndarray, value: float, bounds: Bounds, reason: str) -> dict:
    n, n_asked = int(present.sum()), len(present)
    shares = {"n": n, "n_asked": n_asked, "coverage": n / n_asked if n_asked else float("nan")}
    return {**label, "metric": metric, **shares, "value": value, "worst": bounds.worst, "best": bounds.best, "missing": reason}
