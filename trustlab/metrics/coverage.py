"""Knows which intervals hold what they promise. ``python -m benchmarks.intervals`` writes
``coverage.csv``: a row a kind of interval, truth and number of clustered cases, with the share of
intervals that hold the truth."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

LEAST = 0.90
"""Share of the intervals that must hold the truth, less one standard error of the simulation."""
FILE = Path(__file__).with_name("coverage.csv")
NOT_HELD = "no interval: in simulations it does not hold (docs/coverage.md)"


@cache
def simulated() -> dict[str, pd.DataFrame]:
    """Kind -> its rows: n_cases, low and high of 90 % of the estimates, whether it ``holds``."""
    rows = pd.read_csv(FILE).dropna(subset="low")  # at some sizes a law has no estimate at all
    rows["holds"] = rows["coverage"] + rows["standard_error"] >= LEAST
    return {str(kind): part for kind, part in rows.groupby("kind")}


@lru_cache(maxsize=1 << 14)
def withheld(kind: str, n_cases: int, value: float) -> str:
    """Why an interval of this kind is not printed, or ''; '' too for a kind that was not simulated.
    It must hold for the truths whose estimates reach ``value``, or the nearest, at the largest
    number of cases simulated up to ``n_cases`` and at all above."""
    rows = simulated().get(kind)
    if rows is None:
        return ""
    n, low, high, holds = (rows[c].to_numpy() for c in ("n_cases", "low", "high", "holds"))
    off, sizes = np.maximum(np.maximum(low - value, value - high), 0), np.unique(n)
    for size in sizes[np.searchsorted(sizes, n_cases, "right") - 1 :]:
        if not holds[(n == size) & (off <= off[n == size].min())].all():
            return NOT_HELD
    return "" if n_cases >= sizes[0] else NOT_HELD
