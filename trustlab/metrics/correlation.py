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

from trustlab.metrics.ties import ArrayPair, numbers, same_shape, tied

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
    left_ranks = rankdata(tied(left))
    right_ranks = rankdata(tied(right))
    return pearson_permutation_p(left_ranks, right_ranks)


def pearson_permutation_p(x: ArrayLike, y: ArrayLike) -> float:
    """Exact two-sided p-value of Pearson's r, as :func:`spearman_permutation_p`; NaN where
    :func:`pearson` is."""
    left, right = _check_series(x, y)
    _check_exact(len(left))
    if np.isnan(pearson(left, right)):
        return float("nan")
    left = left - left.mean()
    right = right - right.mean()
    squares = (left**2).sum() * (right**2).sum()
    size = np.sqrt(squares)
    r = left @ right / size
    reordered = right[_orders(len(left))]
    r_of_orders = reordered @ left / size
    return _share_as_far(r_of_orders, abs(r))


def _share_as_far(r_of_orders: np.ndarray, distance: float) -> float:
    """The share of coefficients (n!,) that lie at least ``distance`` from 0, but for rounding."""
    return float(np.mean(np.abs(r_of_orders) >= distance - SAME))


def spearman_exact_p(rho: float, n: int, rounding: float = 0.0005) -> float:
    """Exact two-sided p-value of a rank correlation of ``n`` points without ties.
    An order counts if its |rho| is at least |``rho``| - ``rounding``, half a unit of the last
    printed digit. NaN below 3 points or for a ``rho`` of NaN. ``ValueError`` above 8 points, for a
    ``rho`` outside -1 to 1, or a negative ``rounding``."""
    if not np.isnan(rho) and abs(rho) > 1:
        raise ValueError(f"a correlation must lie between -1 and 1; received {rho}")
    if n < 0 or not float(n).is_integer():
        raise ValueError(f"n must be a whole number of points; received {n}")
    if not rounding >= 0:
        raise ValueError(f"rounding must be at least 0; received {rounding}")
    _check_exact(n)
    if np.isnan(rho) or n < 3:
        return float("nan")
    rank_differences = _orders(int(n)) - np.arange(n)
    distances = (rank_differences**2).sum(axis=1)
    return _share_as_far(_rho_of(distances, n), abs(rho) - rounding)


def _check_exact(n: int) -> None:
    if n > MAX_EXACT:
        raise ValueError(
            f"exact p-values need at most {MAX_EXACT} points; received {n}"
        )


def _rho_of(distances: np.ndarray, n: int) -> np.ndarray:
    """Rank correlations by their squared rank differences D (m,): 1 - 6 D / (n (n² - 1))."""
    return 1 - 6 * distances / (n * (n * n - 1))


def spearman_values(n: int) -> np.ndarray:
    """The possible values of a rank correlation of ``n`` points without ties, ascending, (m,).
    They are 1 - 6 D / (n (n² - 1)), with D any even number up to n (n² - 1) / 3 (not 4 for 3
    points). ``ValueError`` below 3 points."""
    if not float(n).is_integer() or n < 3:
        raise ValueError(f"n must be whole, from 3; received {n}")
    n = int(n)
    largest = n * (n * n - 1) // 3
    distances = np.arange(0, largest + 1, 2)
    if n == 3:
        distances = distances[distances != 4]
    return _rho_of(distances[::-1], n)


@cache
def _orders(n: int) -> np.ndarray:
    """Each order of n things, numbers from 0, (n!, n)."""
    return np.array(list(permutations(range(n))))


def pearson_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Pearson correlation of each pair of rows, (B, n) and (B, n) -> (B,); NaN also for NaN in a
    row."""
    if x.shape[1] < 3:
        return np.full(len(x), np.nan)
    left = _centered(x)
    right = _centered(y)
    products = (left * right).sum(axis=1)
    left_squares = (left**2).sum(axis=1)
    right_squares = (right**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        r = products / np.sqrt(left_squares * right_squares)
    r = np.clip(r, -1, 1)
    is_flat = _is_constant(x) | _is_constant(y)
    return np.where(is_flat, np.nan, r)


def _centered(rows: np.ndarray) -> np.ndarray:
    return rows - rows.mean(axis=1, keepdims=True)


def spearman_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Spearman correlation of each pair of rows, (B, n) and (B, n) -> (B,); NaN also for NaN in a
    row."""
    x_ranks = rankdata(tied(x), axis=1)
    y_ranks = rankdata(tied(y), axis=1)
    return pearson_rows(x_ranks, y_ranks)


OVER_LEVELS = {"pearson": pearson_rows, "spearman": spearman_rows}
"""Metric -> correlation of each pair of rows, (B, n) and (B, n) -> (B,)."""
PERMUTATION_P = {"pearson": pearson_permutation_p, "spearman": spearman_permutation_p}


def _is_constant(rows: np.ndarray) -> np.ndarray:
    """Which rows are constant in 40 bits: equal means summed in another order stay equal."""
    values = np.asarray(rows, dtype=np.float64)
    mantissa, exponent = np.frexp(values)
    in_40_bits = np.round(mantissa * 2.0**40)
    rounded = np.ldexp(in_40_bits, exponent - 40)
    is_as_first = rounded == rounded[:, :1]
    return is_as_first.all(axis=1)


def _check_series(x: ArrayLike, y: ArrayLike) -> ArrayPair:
    left = numbers("x", x)
    right = numbers("y", y)
    same_shape(x=left, y=right)
    return left, right
