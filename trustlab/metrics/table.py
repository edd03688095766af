"""Every metric of a run, with its interval and the number of rows behind it, as one tidy table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from trustlab.metrics.calibration import CALIBRATION
from trustlab.metrics.correlation import MAX_EXACT, OVER_LEVELS, PERMUTATION_P, rising_band
from trustlab.metrics.discrimination import RANKING
from trustlab.metrics.estimate import NAN, Metric, Rows, across, at_least, estimate, mean, within
from trustlab.metrics.run_tables import KEYS, RunTables, rows_of_methods, shared_rows
from trustlab.metrics.schema import table

__all__ = ["KEYS", "metrics_table", "shared_rows"]

CHANCE = ["chance", "chance_low", "chance_high"]
COLUMNS = ["model", "dataset", "method", "level"]
FLAT = "accuracy or mean confidence is the same at every level"


def metrics_table(
    run: RunTables,
    *,
    n_draws: int = 2000,
    seed: int = 0,
    min_per_class: int = 10,
    scales: Mapping[str, str] | None = None,
    n_jobs: int = 1,
) -> pd.DataFrame:
    """Accuracy, mean confidence, discrimination, correlation and calibration of every method.

    - A value a row, with the columns of :mod:`trustlab.metrics.schema`.
    - ``level`` is '1' to '100', 'pooled' (all rows), 'within' (mean over the levels that have both
      classes, in the estimate and in every draw) or 'across' (accuracy against mean confidence
      over the levels).
    - ``low`` and ``high``: :func:`~trustlab.metrics.estimate.estimate`, all levels of a case
      together. From ECE's draws their mean excess is taken off
      (:func:`~trustlab.metrics.estimate.without_excess`).
    - ``chance``: what a confidence that knows nothing would have: 0.5 for AUROC, the share of
      right answers for AUPRC; for a correlation the median over confidences that merely rise, held
      against the same accuracies, the middle 95 % of which lie between ``chance_low`` and
      ``chance_high`` (:func:`~trustlab.metrics.correlation.rising_band`), and ``p`` its exact
      two-sided permutation p-value, up to 8 levels, every order as likely.
    - Accuracy has method '' and counts an unreadable answer as wrong. Everything else uses the
      ``n`` rows where the method has a value; ``n_missing`` are left out; ``n_rarer`` of the n are
      of the rarer kind, right or wrong.
    - An answer that was not had (``answer`` missing, ``correct`` NaN) or not graded (``correct``
      NaN, its reason in ``missing``) is neither right nor wrong and left out of everything.
    - AUROC and AUPRC are withheld below ``min_per_class`` right or wrong answers ('within': summed
      over its levels). Brier and ECE are given where ``scales`` (method -> scale; by default the
      registry's) says 'probability'.
    - ``ValueError`` on missing columns, repeated keys, answers that are lacking, or infinite
      confidences.
    """
    scales = _registered_scales() if scales is None else scales
    every = rows_of_methods(run.answers, run.confidence, n_draws, seed)
    least = max(min_per_class, 1)
    jobs = (
        delayed(_lines)(label, rows, scales.get(label["method"]) == "probability", least)
        for label, rows in every
    )
    done: Any = Parallel(n_jobs=n_jobs)(jobs)
    return table([line for lines in done for line in lines], COLUMNS, ["n_rarer", *CHANCE, "p"])


def _registered_scales() -> dict[str, str]:
    from trustlab.confidence import METHODS  # here, so that metrics alone never load the methods

    return {name: method.scale for name, method in METHODS.items()}


def _lines(label: dict[str, str], rows: Rows, is_probability: bool, least: int) -> list[dict]:
    made = _of_method(rows, is_probability, least) if label["method"] else _accuracy(rows)
    try:
        return [label | line for line in made]
    except ValueError as error:
        raise ValueError(f"method {label['method']!r}, scale 'probability': {error}") from error


def _accuracy(rows: Rows) -> Iterator[dict[str, Any]]:
    for level, part in {**rows.by("level"), "pooled": rows}.items():
        yield {"metric": "accuracy", "level": str(level), **estimate(part, mean("correct"))}


def _of_method(rows: Rows, is_probability: bool, least: int) -> Iterator[dict[str, Any]]:
    """Every metric of one method: mean confidence, discrimination, correlation, calibration."""
    levels = rows.by("level")
    for level, part in levels.items():
        found = estimate(part, mean("confidence"))
        yield {"metric": "mean_confidence", "level": str(level), **found}
    mixed = [level for level, part in levels.items() if part.rarer]
    inside = rows.where("level", mixed) if len(rows) else rows
    left_out = ", ".join(str(level) for level in levels if level not in mixed)
    note = f"one class only at level {left_out}: left out" if left_out else ""
    few = at_least(least)
    for metric, (statistic, chance) in RANKING.items():
        for level, part in {"pooled": rows, **levels}.items():
            found = estimate(part, Metric(statistic, few))
            found |= {} if few(part) else {"chance": chance(part)}
            yield {"metric": metric, "level": str(level), **found}
        found = estimate(inside, Metric(within(statistic), few), note="" if few(inside) else note)
        if not few(inside):
            found["chance"] = float(np.mean([chance(levels[q]) for q in mixed]))
        yield {"metric": metric, "level": "within", **found}
    yield from _across(rows)
    if is_probability:
        for name in ("brier", "ece"):
            yield {"metric": name, "level": "pooled", **estimate(rows, CALIBRATION[name])}


def _across(rows: Rows) -> Iterator[dict[str, Any]]:
    """Accuracy against mean confidence over the levels, both on the rows the method has."""
    parts = [part for part in rows.by("level").values() if len(part)]
    means = [[float(part[c].mean()) for part in parts] for c in ("correct", "confidence")]
    short = "fewer than 3 levels" if len(parts) < 3 else ""
    for metric, over_rows in OVER_LEVELS.items():
        found = estimate(rows, Metric(across(over_rows), lambda _: short, FLAT))
        if not np.isnan(found["value"]):
            low, middle, high = rising_band(means[0], metric)
            found |= dict(zip(CHANCE, (middle, low, high), strict=True))
            found["p"] = PERMUTATION_P[metric](*means) if len(parts) <= MAX_EXACT else NAN
        yield {"metric": metric, "level": "across", **found}
