"""What becomes of accuracy and confidence where a model is out of the world it was taught."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from trustlab.metrics.intervals import case_weights, percentile_interval

if TYPE_CHECKING:
    from trustlab.experiments.benchmark import Run

COLUMNS = ["set", "n", "what", "value", "low", "high", "n_known"]


def beyond_table(runs: Mapping[str, Run], methods: Sequence[str], n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """By set of cases: accuracy, and the mean confidence of each method, with 95 % case-bootstrap intervals.

    Columns set n what value low high n_known: ``what`` is "accuracy" or a method, ``n`` counts answers, ``n_known`` those
    with a value. One model and one level a run; a mean over no values is missing.
    """
    rows = []
    for name, run in runs.items():
        wide = run.confidence.pivot(index="case_id", columns="method", values="confidence")
        wide["accuracy"] = run.answers.set_index("case_id")["correct"].astype(float)
        for what in ("accuracy", *methods):
            values = wide[what].dropna()
            value, low, high = _mean(values, n_draws, seed)
            rows.append((name, len(wide), what, value, low, high, len(values)))
    return pd.DataFrame(rows, columns=COLUMNS)


def _mean(values: pd.Series, n_draws: int, seed: int) -> tuple[float, float, float]:
    if not len(values):
        return (float("nan"),) * 3
    weights = case_weights(values.index.to_numpy(), n_draws, seed)
    draws = weights @ values.to_numpy() / weights.sum(1)
    return float(np.mean(values)), *percentile_interval(draws)
