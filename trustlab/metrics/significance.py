"""Could this be chance? P-values from bootstrap draws, and p-values of many tests corrected together."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import false_discovery_control


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


def _checked(p: ArrayLike) -> np.ndarray:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"p must have shape (m,); received {values.shape}")
    outside = (values < 0) | (values > 1)
    if outside.any():
        raise ValueError(f"p must lie between 0 and 1, or be NaN; received {values[outside][0]}")
    return values
