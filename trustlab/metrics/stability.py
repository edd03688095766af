"""Asks whether a confidence stays put when the wording changes (CV). A coefficient of variation
(CV) is a population standard deviation by a mean, in percent: *CV group* of the conditions' means,
*CV sample* of each row over the conditions, then the mean over rows. It asks for a ratio scale (a
method's ``ratio``). Ren et al. 2026, robustness; percent, population standard deviation and
intervals are ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trustlab.metrics.estimate import NAN, Line, Metric, Rows, Statistic, estimate
from trustlab.metrics.intervals import Span
from trustlab.metrics.ties import numbers

NO_MEAN = "the mean confidence is 0"
NOT_WHOLE = "no row has a value in every condition"
NO_SPREAD = 1e-12  # a standard deviation below this is rounding, and counts as 0


def _of_means(rows: Rows) -> np.ndarray:
    conditions = rows.table.filter(like="under ")
    means = [rows.mean(conditions[name]) for name in conditions]
    return _cv(np.stack(means, axis=-1))


def _ends(rows: Rows) -> Span:
    """The ends of CV sample: 0 and the largest mean of a case among these rows.
    The largest that there can be is many times what confidences have, and would make an interval
    that says nothing."""
    sums = np.bincount(rows.case, rows["cv"])
    means = sums / np.bincount(rows.case)
    return 0.0, float(np.max(means, initial=0.0))


CVS: dict[str, Statistic] = {
    "cv_group": Statistic(_of_means),
    "cv_sample": Statistic(lambda rows: rows.mean(rows["cv"]), "cv_sample", _ends),
}
"""The statistics of :func:`views`."""


def views(
    metric: str,
    confidences: Sequence[ArrayLike],
    case_ids: ArrayLike,
    none: str = NOT_WHOLE,
) -> list[Rows]:
    """Rows for a statistic of :data:`CVS`, for each of ``confidences``, all on the same rows.

    - Each is (n, C): n rows, one for each case (and level), and C conditions, at least 2.
    - A row is known if each has a value in every condition; for CV sample also a mean above 0.
      ``none`` is the reason where no row is known.
    - ``ValueError`` on other shapes, infinite or negative values.
    """
    tables = [_row_table(values, case_ids) for values in confidences]
    needed = "mean"
    if metric == "cv_sample":
        needed = "cv"
    is_measured = np.all([table[needed].notna() for table in tables], axis=0)
    return [Rows(table, is_measured, none=none) for table in tables]


def cv_group(confidence: ArrayLike, case_ids: ArrayLike) -> Line:
    """How far the mean confidence differs between conditions: an estimate in percent.
    Arguments and errors are as in :func:`views`; ``n_zero`` counts the rows with mean 0."""
    return _measured("cv_group", confidence, case_ids)


def cv_sample(confidence: ArrayLike, case_ids: ArrayLike) -> Line:
    """How far one answer's confidence differs: as :func:`cv_group`, without the ``n_zero`` rows."""
    return _measured("cv_sample", confidence, case_ids)


def _measured(metric: str, confidence: ArrayLike, case_ids: ArrayLike) -> Line:
    (rows,) = views(metric, [confidence], case_ids)
    is_zero = rows.asked["mean"].eq(0).to_numpy()
    if metric == "cv_sample":
        none = NOT_WHOLE
        if is_zero.any():
            none = NO_MEAN
        rows = replace(rows.at(~is_zero), none=none)
    statistic = CVS[metric]
    line = estimate(rows, Metric(statistic, undefined=NO_MEAN))
    line["n_zero"] = int(is_zero.sum())
    return line


def cv_group_by_chance(
    confidence: ArrayLike, n_draws: int = 2000, seed: int = 0
) -> float:
    """The CV group (percent) that 95 % of ``n_draws`` shufflings of each row's labels stay below;
    NaN without a whole row or a mean."""
    values = np.asarray(confidence, dtype=np.float64)
    table = _row_table(values, np.zeros(len(values)))
    whole = values[table["mean"].notna()]
    if not len(whole):
        return NAN
    rng = np.random.default_rng(seed)
    means = []
    for _ in range(n_draws):
        order = rng.random(whole.shape).argsort(axis=1)
        shuffled = np.take_along_axis(whole, order, axis=1)
        means.append(shuffled.mean(axis=0))
    return float(np.quantile(_cv(np.array(means)), 0.95))


def _row_table(confidence: ArrayLike, case_ids: ArrayLike) -> pd.DataFrame:
    """A column "under ..." a condition, ``case_id``, the row's ``mean`` and its own ``cv``."""
    values = numbers("confidence", confidence, n_dim=2, low=0, missing=True)
    cases = np.asarray(case_ids)
    n_rows, n_conditions = values.shape
    if n_conditions < 2 or cases.shape != (n_rows,):
        wanted = "confidence must be (n, C) with C at least 2, case_ids (n,)"
        raise ValueError(f"{wanted}; received {values.shape} and {cases.shape}")
    conditions = pd.DataFrame(values).add_prefix("under ")
    means = values.mean(axis=1)
    return conditions.assign(case_id=cases, mean=means, cv=_cv(values))


def _cv(values: np.ndarray) -> np.ndarray:
    """Standard deviation by mean over the last axis, in percent; NaN where the mean is 0."""
    mean = values.mean(axis=-1)
    sd = values.std(axis=-1)
    spread = np.where(sd < NO_SPREAD, 0, sd)
    with np.errstate(divide="ignore", invalid="ignore"):
        percent = 100 * spread / mean
    return np.where(mean > 0, percent, np.nan)
