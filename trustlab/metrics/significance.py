"""Asks whether this could be chance, and how many cases it takes to know."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from trustlab.metrics.ties import numbers


def holm(p: ArrayLike) -> np.ndarray:
    """P-values (m,) after Holm's step-down correction (Holm 1979); NaN stays NaN and is no test.
    ``ValueError`` for other shapes or values outside 0 to 1."""
    values = numbers("p", p, low=0, high=1, missing=True)
    is_test = ~np.isnan(values)
    n_tests = int(np.sum(is_test))
    order = np.argsort(values)[:n_tests]  # NaN comes last
    scaled = values[order] * np.arange(n_tests, 0, -1)
    stepped = np.maximum.accumulate(scaled)
    corrected = np.full(len(values), np.nan)
    corrected[order] = np.minimum(stepped, 1)
    return corrected


ALPHA = 0.05  # a corrected p below this is beyond chance
MOST = 10_000
"""Past so many cases it only matters that there are more: the difference is next to none."""


def sample_size_for_power(
    difference: float, standard_error: float, n_cases: int
) -> float:
    """How many cases would tell ``difference`` from 0 with 80 % power: a whole number, at least 2.

    - Two-sided, at 5 %: ``n_cases`` times ((z(0.975) + z(0.8)) standard errors / difference)
      squared; ``standard_error`` is that over ``n_cases`` cases, by the jackknife.
    - Too small for a difference that was chosen as the largest of many.
    - NaN where the difference is 0 or something is missing or without spread; ``ValueError`` for a
      negative standard error or number of cases.
    """
    if standard_error < 0 or n_cases < 0:
        received = f"{standard_error}, {n_cases}"
        raise ValueError(
            f"standard_error and n_cases must be at least 0; got {received}"
        )
    is_finite = math.isfinite(difference) and math.isfinite(standard_error)
    if not is_finite or difference == 0 or standard_error == 0 or not n_cases:
        return float("nan")
    quantiles = float(norm.ppf(0.975) + norm.ppf(0.8))
    reach = quantiles * standard_error / abs(difference)
    n_needed = math.ceil(n_cases * reach**2)
    return float(max(n_needed, 2))


def cases_shown(n: float) -> str:
    """A number of cases to read: "1,234", "> 10,000", or "–" where there is none."""
    if math.isnan(n):
        return "–"
    if n > MOST:
        return f"> {MOST:,}"
    return f"{n:,.0f}"
