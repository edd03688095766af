"""Says what chance would give a correlation over the levels."""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from trustlab.metrics.correlation import OVER_LEVELS, spearman_exact_p, spearman_values
from trustlab.metrics.ties import Band, check_allowed, middle_of, numbers


def rising_band(accuracies: ArrayLike, statistic: str = "pearson") -> Band:
    """(low, median, high) of what the rising null gives these accuracies (n,), its middle 95 %.
    ``statistic`` is "pearson" or "spearman". NaN where all accuracies are the same. ``ValueError``
    below 3 points, for accuracies that are not finite or another statistic."""
    points = numbers("accuracies", accuracies).tolist()
    return _rising_band(tuple(points), statistic)


@lru_cache(maxsize=4096)
def _rising_band(accuracies: tuple[float, ...], statistic: str) -> Band:
    check_allowed("statistic", statistic, OVER_LEVELS)
    n_points = len(accuracies)
    if n_points < 3:
        raise ValueError(f"at least 3 points are needed; received {n_points}")
    n_draws = 20_000
    if statistic == "spearman":
        n_draws = 1  # whatever rises has the same ranks
    rng = np.random.default_rng(0)
    steps = rng.standard_exponential((n_draws, n_points))
    confidences = np.cumsum(steps, axis=1)
    repeated = np.tile(accuracies, (n_draws, 1))
    return middle_of(OVER_LEVELS[statistic](repeated, confidences))


@cache
def unordered_band(n_points: int = 6) -> Band:
    """(low, median, high) of Spearman's rho of two unrelated series of ``n_points`` in any order.
    Exact, without ties: ``high`` is the smallest rho that at most 5 % of all orders reach in size
    (0.886 for six points), ``low`` its negative; NaN below 5 points. ``ValueError`` below 3 or
    above 8."""
    values = spearman_values(n_points)
    for rho in values[values > 0]:  # ascending
        if spearman_exact_p(rho, n_points, rounding=0) <= 0.05:
            return -float(rho), 0.0, float(rho)
    return float("nan"), 0.0, float("nan")
