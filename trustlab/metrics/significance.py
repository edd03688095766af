"""Could this be chance? P-values from bootstrap draws, and p-values of many tests corrected together."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import false_discovery_control

from trustlab.metrics.intervals import MAX_UNDEFINED, all_alike, checked_draws

ZERO = 1e-12
"""A difference nearer to 0 than this is 0 up to rounding."""


def holm(p: ArrayLike) -> np.ndarray:
    """P-values (m,) after Holm's step-down correction, which bounds the chance of any false finding. Holm 1979.

    NaN stays NaN and is no test. Raises ``ValueError`` for other shapes or values outside 0 to 1.
    """
    values = _checked(p)
    order = np.argsort(values)[: int(np.sum(~np.isnan(values)))]
    stepped = np.maximum.accumulate(values[order] * np.arange(len(order), 0, -1))
    found = np.full(len(values), np.nan)
    found[order] = np.minimum(stepped, 1)
    return found


def benjamini_hochberg(p: ArrayLike) -> np.ndarray:
    """P-values (m,) adjusted to the false discovery rate: the share of findings that are false. Benjamini & Hochberg 1995.

    NaN stays NaN and is no test. Raises as :func:`holm`.
    """
    values = _checked(p)
    known = ~np.isnan(values)
    found = np.full(len(values), np.nan)
    if known.any():
        found[known] = false_discovery_control(values[known])
    return found


def bootstrap_p(draws: ArrayLike) -> float:
    """Two-sided p of a difference being 0, from its bootstrap draws (B,): twice the rarer sign's draws, and one more.

    (2 · min(#{d <= 0}, #{d >= 0}) + 1) / (B + 1), at most 1: never 0, since B draws cannot show that. NaN where more than 10 %
    of the draws are undefined (NaN; the others are the B) or all are alike. Raises ``ValueError`` for no draws, other shapes
    or infinite values. Efron & Tibshirani 1993, ch. 15 (achieved significance level).
    """
    values = checked_draws(draws)
    known = values[~np.isnan(values)]
    if len(values) - len(known) > MAX_UNDEFINED * len(values) or all_alike(known):
        return float("nan")
    rarer = min(int(np.sum(known <= ZERO)), int(np.sum(known >= -ZERO)))
    return min((2 * rarer + 1) / (len(known) + 1), 1.0)


def _checked(p: ArrayLike) -> np.ndarray:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"p must have shape (m,); received {values.shape}")
    outside = (values < 0) | (values > 1)
    if outside.any():
        raise ValueError(f"p must lie between 0 and 1, or be NaN; received {values[outside][0]}")
    return values
