"""How much of each method is missing, and how far could that move what is said of it?

What each end means is told in :mod:`trustlab.metrics.bounds`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from trustlab.metrics import bounds, schema
from trustlab.metrics.bounds import Bounds
from trustlab.metrics.calibration import CALIBRATION
from trustlab.metrics.correlation import OVER_LEVELS
from trustlab.metrics.discrimination import RANKING
from trustlab.metrics.estimate import (
    NAN,
    Metric,
    Rows,
    across,
    at_least,
    estimate,
    mean,
    most_frequent,
)
from trustlab.metrics.run_tables import rows_of_methods

NO_ENDS = "a score has no ends, so no worst and best"
ONLY_RANGE = "no sharp bound is computed: only the metric's range"
FLAT = "fewer than 3 levels, or one side is the same at every level"
RANGES = {"ece": (1.0, 0.0), "pearson": (-1.0, 1.0), "spearman": (-1.0, 1.0)}
"""Metrics without a sharp bound -> worst and best they can be."""


def missingness_table(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    scales: Mapping[str, str],
    *,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """Each metric on what there is, beside its worst and best were the missing had.

    - A row a model, data set, method and metric, all levels together; method '' for the accuracy of
      the answers themselves. ``n_missing`` of the answers asked for have no value (no grade).
    - ``worst`` and ``best`` are the ends (of a mean confidence the lowest and highest) over every
      way of filling in the others: sharp, but for ECE and the correlations over levels, where only
      the metric's range is given, and for scores that are no probabilities (``scales``, method ->
      scale), whose mean has no ends. No end is an interval's.
    - An unreadable answer is wrong, with a missing confidence; a failed or ungraded one may be
      either. AUROC and AUPRC are withheld below ``min_per_class`` right or wrong answers.
    - ``ValueError`` as :func:`~trustlab.metrics.run_tables.rows_of_methods`.
    """
    lines: list[dict[str, Any]] = []
    for label, rows in rows_of_methods(answers, confidence, n_draws=0):
        is_probability = scales.get(label["method"]) == "probability"
        for line in (
            _of_method(rows, is_probability, min_per_class) if label["method"] else _accuracy(rows)
        ):
            lines.append(label | line)
    found = schema.table(lines, ["model", "dataset", "method"], ["worst", "best"])
    return found.drop(columns=["low", "high"])  # nothing is drawn here


def _accuracy(rows: Rows) -> Iterator[dict[str, Any]]:
    correct = rows.asked["correct"].where(rows.known).to_numpy(dtype=float)
    lost = {
        "missing": int(np.sum(rows.asked["failed"])),
        "ungraded": int(np.sum(rows.asked["ungraded"])),
    }
    why = ", ".join(f"{n} {what}" for what, n in lost.items() if n)
    yield _line("accuracy", rows, Metric(mean("correct")), bounds.accuracy_bounds(correct), why)


def _of_method(rows: Rows, is_probability: bool, least: int) -> Iterator[dict[str, Any]]:
    asked, lost = rows.asked, len(rows.asked) - len(rows)
    why = f"{lost} missing, most often: {most_frequent(asked[~rows.known])}" if lost else ""
    why = why if len(rows) else rows.why
    graded = ~(asked["failed"] | asked["ungraded"])
    correct = asked["correct"].where(graded).to_numpy(dtype=float)
    sure = asked["confidence"].to_numpy(dtype=float)
    ends: dict[str, Bounds] = {
        "auroc": bounds.auroc_bounds(correct, sure),
        "auprc": bounds.auprc_bounds(correct, sure),
    }
    metrics = {"mean_confidence": Metric(mean("confidence"))}
    metrics |= {name: Metric(of, at_least(least)) for name, (of, _) in RANKING.items()}
    if is_probability:
        metrics |= {name: CALIBRATION[name] for name in ("brier", "ece")}
        ends["mean_confidence"] = bounds.mean_confidence_bounds(sure)
        ends["brier"] = bounds.brier_bounds(correct, sure)
    metrics |= {name: Metric(across(of), undefined=FLAT) for name, of in OVER_LEVELS.items()}
    for name, metric in metrics.items():
        note = ""
        if lost and name in RANGES:
            ends[name], note = Bounds(*RANGES[name]), ONLY_RANGE
        elif lost and name not in ends:
            ends[name], note = bounds.NONE, NO_ENDS
        yield _line(name, rows, metric, ends.get(name), why, note)


def _line(
    name: str, rows: Rows, metric: Metric, ends: Bounds | None, why: str, note: str = ""
) -> dict[str, Any]:
    """``ends`` are the value itself where nothing is missing."""
    value = (
        float(rows.drawn(metric.statistic)[0]) if len(rows) and not metric.withheld(rows) else NAN
    )
    found = estimate(rows, metric)
    alone = metric.withheld(rows) or (metric.undefined if np.isnan(value) else "")
    told = [note or (alone if len(rows) else ""), why]
    ends = ends or Bounds(value, value)
    more = {"worst": ends.worst, "best": ends.best, "missing": "; ".join(filter(None, told))}
    return {"metric": name, **found, **more}
