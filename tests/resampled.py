"""What metrics give of one sample, without each case, and how often each row is in a draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from trustlab.metrics.agreement import cohen_kappa_weighted
from trustlab.metrics.calibration import brier, brier_parts
from trustlab.metrics.estimate import Draws


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


def once(values: Any) -> np.ndarray:
    return np.ones((1, np.size(values)), int)


def case_weights(case_ids: Any, n_draws: int = 2000, seed: int = 0) -> np.ndarray:
    """How often each row is in each draw of cases, (n_draws, n)."""
    draws = Draws.of(np.asarray(case_ids), n_draws, seed)
    return draws.times[draws.index.get_indexer(np.asarray(case_ids))].astype(int).T


def without_each(measure: Callable[..., float], case_ids: Any, *columns: Any) -> np.ndarray:
    """A measure of columns (n,) without each of the cases, one after another, (C,)."""
    case, values = np.asarray(case_ids), [np.asarray(column) for column in columns]
    return np.array([measure(*(x[case != one] for x in values)) for one in np.unique(case)])


def brier_decomposition(correct: Any, confidence: Any) -> BrierParts:
    return BrierParts(brier(correct, confidence), *brier_parts(correct, confidence))


def cohen_kappa(a: Any, b: Any) -> float:
    return float(cohen_kappa_weighted(a, b, once(a))[0])
