"""Do accuracy and mean confidence rise together over the information levels?"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

MAX_EXACT = 8
"""Most points for which every order is tried: 8! = 40,320."""


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Pearson correlation of two series (n,), in [-1, 1].

    NaN with fewer than 3 points, or when a side is constant up to rounding. ``ValueError`` on NaN or other shapes.
    Two unrelated series that merely rise have a median near 0.92 over six points: read it beside that.
    """
    left, right = _check_series(x, y)
    return float(pearson_rows(left[None], right[None])[0])


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman rank correlation of two series (n,), in [-1, 1], ties given their mean rank; NaN as in :func:`pearson`."""
    left, right = _check_series(x, y)
    return float(spearman_rows(left[None], right[None])[0])


def spearman_permutation_p(x: ArrayLike, y: ArrayLike) -> float:
    """Exact two-sided p-value of Spearman's rho: the share of all n! pairings at least as far from 0.

    Series (n,) with n at most 8, ``ValueError`` above. NaN where :func:`spearman` is.
    """
    left, right = _check_series(x, y)
    if len(left) > MAX_EXACT:
        raise ValueError(f"exact p-values need at most {MAX_EXACT} points; received {len(left)}")
    observed = spearman(left, right)
    if np.isnan(observed):
        return float("nan")
    shuffled = right[np.array(list(permutations(range(len(right)))))]
    rho = spearman_rows(np.broadcast_to(left, shuffled.shape), shuffled)
    return float(np.mean(np.abs(rho) >= abs(observed) - 1e-9))


def pearson_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Pearson correlation of each pair of rows, (B, n) and (B, n) -> (B,); NaN also for a row that holds NaN."""
    if x.shape[1] < 3:
        return np.full(len(x), np.nan)
    left, right = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    flat = _constant(x) | _constant(y)
    with np.errstate(divide="ignore", invalid="ignore"):
        r = (left * right).sum(axis=1) / np.sqrt((left**2).sum(axis=1) * (right**2).sum(axis=1))
    return np.where(flat, np.nan, np.clip(r, -1, 1))


def spearman_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Spearman correlation of each pair of rows, (B, n) and (B, n) -> (B,); NaN also for a row that holds NaN."""
    return pearson_rows(rankdata(_without_rounding(x), axis=1), rankdata(_without_rounding(y), axis=1))


def _without_rounding(values: np.ndarray) -> np.ndarray:
    """Keep 40 bits, so that equal means summed in another order stay equal."""
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    return np.ldexp(np.round(mantissa * 2.0**40), exponent - 40)


def _constant(rows: np.ndarray) -> np.ndarray:
    kept = _without_rounding(rows)
    return (kept == kept[:, :1]).all(axis=1)


def _check_series(x: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    left, right = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if left.ndim != 1 or left.shape != right.shape:
        raise ValueError(f"both series must have shape (n,); received {left.shape} and {right.shape}")
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise ValueError(f"both series must be finite; received {left} and {right}")
    return left, right
