"""Asks whether accuracy and confidence rise together over the levels.

- P-values are exact, two-sided, and assume that every order is as likely.
- The *rising* null: accuracies stay as they are, a confidence is drawn that merely rises, the
  running sum of independent exponential steps. Six accuracies that rise evenly give a Pearson
  correlation of 0.96 (median; 95 % within 0.86 to 0.99).
- The *unordered* null: every order of the one series is as likely.
"""

from __future__ import annotations

from functools import cache
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from trustlab.metrics.ties import numbers, same_shape, tied

MAX_EXACT = 8  # most points for which every order is tried: 8! = 40,320
SAME = 1e-9  # coefficients nearer to each other than this differ by rounding alone


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Pearson correlation of two series (n,), in [-1, 1]; read it beside :func:`rising_band`.
    NaN below 3 points, or if a series is constant up to rounding. ``ValueError`` on NaN or other
    shapes."""
    left, right = _check_series(x, y)
    return float(pearson_rows(left[None], right[None])[0])


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman rank correlation of two series (n,), in [-1, 1]; NaN as in :func:`pearson`."""
    left, right = _check_series(x, y)
    return float(spearman_rows(left[None], right[None])[0])


def spearman_permutation_p(x: ArrayLike, y: ArrayLike) -> float:
    """Exact two-sided p-value of Spearman's rho: the share of all n! pairings at least as far from
    0. The series have (n,) points with n at most 8, else ``ValueError``. NaN where :func:`spearman`
    is NaN."""
    left, right = _check_series(x, y)
    return pearson_permutation_p(rankdata(tied(left)), rankdata(tied(right)))


def pearson_permutation_p(x: ArrayLike, y: ArrayLike) -> float:
    """The same of Pearson's r; NaN where :func:`pearson` is."""
    left, right = _check_series(x, y)
    if len(left) > MAX_EXACT:
        raise ValueError(f"exact p-values need at most {MAX_EXACT} points; received {len(left)}")
    if np.isnan(pearson(left, right)):
        return float("nan")
    left, right = left - left.mean(), right - right.mean()
    size = np.sqrt((left**2).sum() * (right**2).sum())
    of_orders = np.abs(right[_orders(len(left))] @ left / size)
    return float(np.mean(of_orders >= abs(left @ right / size) - SAME))


def spearman_exact_p(rho: float, n: int, rounding: float = 0.0005) -> float:
    """Exact two-sided p-value of a rank correlation of ``n`` points without ties.
    An order counts if its |rho| is at least |``rho``| - ``rounding``, half a unit of the last
    printed digit. NaN below 3 points or for a ``rho`` of NaN. ``ValueError`` above 8 points, for a
    ``rho`` outside -1 to 1, or a negative ``rounding``."""
    if not np.isnan(rho) and not -1 <= rho <= 1:
        raise ValueError(f"a correlation must lie between -1 and 1; received {rho}")
    if not (n >= 0 and float(n).is_integer()):
        raise ValueError(f"n must be a whole number of points; received {n}")
    if not rounding >= 0:
        raise ValueError(f"rounding must be at least 0; received {rounding}")
    if n > MAX_EXACT:
        raise ValueError(f"exact p-values need at most {MAX_EXACT} points; received {n}")
    if np.isnan(rho) or n < 3:
        return float("nan")
    distances = ((_orders(int(n)) - np.arange(n)) ** 2).sum(axis=1)
    of_orders = 1 - 6 * distances / (n * (n * n - 1))
    return float(np.mean(np.abs(of_orders) >= abs(rho) - rounding - SAME))


def spearman_values(n: int) -> np.ndarray:
    """The possible values of a rank correlation of ``n`` points without ties, ascending, (m,).
    They are 1 - 6 D / (n (n² - 1)), with D any even number up to n (n² - 1) / 3 (not 4 for 3
    points). ``ValueError`` below 3 points."""
    if not float(n).is_integer() or n < 3:
        raise ValueError(f"n must be whole, from 3; received {n}")
    n = int(n)
    distances = np.arange(0, n * (n * n - 1) // 3 + 1, 2)
    if n == 3:
        distances = distances[distances != 4]
    return 1 - 6 * distances[::-1] / (n * (n * n - 1))


@cache
def _orders(n: int) -> np.ndarray:
    """Each order of n things, numbers from 0, (n!, n)."""
    return np.array(list(permutations(range(n))))


def pearson_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Pearson correlation of each pair of rows, (B, n) and (B, n) -> (B,); NaN also for NaN in a
    row."""
    if x.shape[1] < 3:
        return np.full(len(x), np.nan)
    left, right = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    flat = _constant(x) | _constant(y)
    with np.errstate(divide="ignore", invalid="ignore"):
        r = (left * right).sum(axis=1) / np.sqrt((left**2).sum(axis=1) * (right**2).sum(axis=1))
    return np.where(flat, np.nan, np.clip(r, -1, 1))


def spearman_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Spearman correlation of each pair of rows, (B, n) and (B, n) -> (B,); NaN also for NaN in a
    row."""
    return pearson_rows(rankdata(tied(x), axis=1), rankdata(tied(y), axis=1))


OVER_LEVELS = {"pearson": pearson_rows, "spearman": spearman_rows}
"""Metric -> correlation of each pair of rows, (B, n) and (B, n) -> (B,)."""
PERMUTATION_P = {"pearson": pearson_permutation_p, "spearman": spearman_permutation_p}


def _constant(rows: np.ndarray) -> np.ndarray:
    """Which rows are constant in 40 bits: equal means summed in another order stay equal."""
    mantissa, exponent = np.frexp(np.asarray(rows, dtype=np.float64))
    kept = np.ldexp(np.round(mantissa * 2.0**40), exponent - 40)
    return (kept == kept[:, :1]).all(axis=1)


def _check_series(x: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    left, right = numbers("x", x), numbers("y", y)
    same_shape(x=left, y=right)
    return left, right
