"""Could this be chance? P-values of many tests, corrected together."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import false_discovery_control

from trustlab.metrics.ties import numbers


def holm(p: ArrayLike) -> np.ndarray:
    """P-values (m,) after Holm's step-down correction. Holm 1979.

    It bounds the chance of any false finding. NaN stays NaN and is no test. Raises
    ``ValueError`` for other shapes or values outside 0 to 1.
    """
    values = numbers("p", p, low=0, high=1, missing=True)
    order = np.argsort(values)[: int(np.sum(~np.isnan(values)))]
    stepped = np.maximum.accumulate(values[order] * np.arange(len(order), 0, -1))
    found = np.full(len(values), np.nan)
    found[order] = np.minimum(stepped, 1)
    return found


def benjamini_hochberg(p: ArrayLike) -> np.ndarray:
    """P-values (m,) adjusted to the false discovery rate: the share of findings that are false.

    Benjamini & Hochberg 1995. NaN stays NaN and is no test. Raises as :func:`holm`.
    """
    values = numbers("p", p, low=0, high=1, missing=True)
    known = ~np.isnan(values)
    found = np.full(len(values), np.nan)
    if known.any():
        found[known] = false_discovery_control(values[known])
    return found
