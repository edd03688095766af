"""What the weighted metrics give of one sample, and how often each row is in a bootstrap draw."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from trustlab.metrics.agreement import cohen_kappa_weighted
from trustlab.metrics.calibration import brier, brier_parts_weighted
from trustlab.metrics.discrimination import ranking_weighted
from trustlab.metrics.estimate import Draws
from trustlab.metrics.selective import selective_weighted


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


def auroc_weighted(correct: Any, confidence: Any, weights: Any) -> np.ndarray:
    return ranking_weighted(correct, confidence, weights)[0]


def auprc_weighted(correct: Any, confidence: Any, weights: Any) -> np.ndarray:
    return ranking_weighted(correct, confidence, weights)[1]


def aurc(correct: Any, confidence: Any) -> float:
    return float(selective_weighted(correct, confidence, once(correct))[0][0])


def prediction_rejection_ratio(correct: Any, confidence: Any) -> float:
    return float(selective_weighted(correct, confidence, once(correct))[1][0])


def brier_decomposition(correct: Any, confidence: Any) -> BrierParts:
    parts = brier_parts_weighted(correct, confidence, once(correct))[0]
    return BrierParts(brier(correct, confidence), *map(float, parts))


def cohen_kappa(a: Any, b: Any) -> float:
    return float(cohen_kappa_weighted(a, b, once(a))[0])
