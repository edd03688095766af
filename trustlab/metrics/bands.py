"""Says what chance would give a correlation over the levels."""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from trustlab.metrics.correlation import OVER_LEVELS, spearman_exact_p, spearman_values
from trustlab.metrics.ties import numbers

Band = tuple[float, float, float]  # low end, median and high end of what chance gives


def rising_band(accuracies: ArrayLike, statistic: str = "pearson") -> Band:
    """(low, median, high) of what the rising null gives these accuracies (n,), its middle 95 %.
    ``statistic`` is "pearson" or "spearman". NaN where all accuracies are the same. ``ValueError``
    below 3 points, for accuracies that are not finite or another statistic."""
    return _rising_band(tuple(numbers("accuracies", accuracies).tolist()), statistic)


@lru_cache(maxsize=4096)
def _rising_band(fixed: tuple[float, ...], statistic: str) -> Band:
    if statistic not in OVER_LEVELS:
        raise ValueError(f"statistic is {statistic!r}; allowed are {list(OVER_LEVELS)}")
    if len(fixed) < 3:
        raise ValueError(f"at least 3 points are needed; received {len(fixed)}")
    n_draws = 1 if statistic == "spearman" else 20_000
    series = np.cumsum(np.random.default_rng(0).standard_exponential((n_draws, len(fixed))), axis=1)
    draws = OVER_LEVELS[statistic](np.tile(fixed, (n_draws, 1)), series)
    low, median, high = np.quantile(draws, [0.025, 0.5, 0.975])
    return float(low), float(median), float(high)


@cache
def unordered_band(n_points: int = 6) -> Band:
    """(low, median, high) of Spearman's rho of two unrelated series of ``n_points`` in any order.
    Exact, without ties: ``high`` is the smallest rho that at most 5 % of all orders reach in size
    (0.886 for six points), ``low`` its negative; NaN below 5 points. ``ValueError`` below 3 or
    above 8."""
    values = spearman_values(n_points)
    rare = [v for v in values[values > 0] if spearman_exact_p(v, n_points, rounding=0) <= 0.05]
    critical = float(min(rare)) if rare else float("nan")
    return -critical, 0.0, critical
