"""What metrics give of one sample and without each case, and the interval of that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from trustlab.metrics.agreement import kappa
from trustlab.metrics.calibration import brier, brier_parts
from trustlab.metrics.intervals import jackknife_error, with_extremes


class BrierParts(NamedTuple):
    brier: float
    miscalibration: float
    discrimination: float
    uncertainty: float


def one_row(table: pd.DataFrame, **where: object) -> pd.Series:
    """The only row of a table with these values."""
    for column, value in where.items():
        table = table[table[column] == value]
    assert len(table) == 1, f"{len(table)} rows of {where}"
    return table.iloc[0]


def without_each(measure: Callable[..., float], case_ids: Any, *columns: Any) -> np.ndarray:
    """A measure of columns (n,) without each of the cases, one after another, (C,)."""
    case, values = np.asarray(case_ids), [np.asarray(column) for column in columns]
    return np.array([measure(*(x[case != one] for x in values)) for one in np.unique(case)])


def jackknife(
    value: float, leaves: Any, ends: tuple[float, float], n: float = 0
) -> tuple[float, float]:
    """The interval from the values without each case, (C,); ``n``: cases behind it (0: all)."""
    return with_extremes(value, jackknife_error(leaves), n or len(leaves), ends)


def brier_decomposition(correct: Any, confidence: Any) -> BrierParts:
    return BrierParts(brier(correct, confidence), *brier_parts(correct, confidence))


def cohen_kappa(a: Any, b: Any) -> float:
    one, other = np.asarray(a, float), np.asarray(b, float)
    return float(kappa(one.mean(), other.mean(), (one == other).mean()))
