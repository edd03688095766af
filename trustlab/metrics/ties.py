"""Checks numbers and choices, and makes near-ties ties."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

ArrayPair = tuple[np.ndarray, np.ndarray]
Band = tuple[float, float, float]  # low end, median and high end of what chance gives
SHARE = 1e-6
"""How wide a tie may be: this share of the values' spread."""
UNITS = 16
"""Or so many units in the last place."""
FEW = 21
"""From here on, one far value moves neither the 5th nor the 95th percentile."""


def numbers(
    name: str,
    values: ArrayLike,
    *,
    n_dim: int = 1,
    low: float = -np.inf,
    high: float = np.inf,
    only: Sequence[float] = (),
    missing: bool = False,
) -> np.ndarray:
    """``values`` as an array of floats with ``n_dim`` dimensions.
    ``ValueError``, which calls them ``name``, for another shape, what is not finite (``missing``:
    NaN is allowed), outside ``low`` to ``high`` or not among ``only``."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != n_dim:
        raise ValueError(
            f"{name} must have {n_dim} dimension(s); received shape {array.shape}"
        )
    is_missing = np.isnan(array)
    is_bad = np.isinf(array) | (array < low) | (array > high)
    if not missing:
        is_bad |= is_missing
    if len(only):
        is_bad |= ~is_missing & ~np.isin(array, only)
    if is_bad.any():
        allowed = f"finite, from {low} to {high}"
        if len(only):
            allowed = " or ".join(map(str, only))
        if missing:
            allowed += ", or NaN where missing"
        raise ValueError(f"{name} must be {allowed}; received {array[is_bad][0]}")
    return array


def check_allowed(name: str, value: Any, allowed: Collection[str]) -> None:
    """``ValueError`` for a ``value`` of ``name`` that is not among those ``allowed``."""
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; allowed are {list(allowed)}")


def same_shape(**arrays: np.ndarray) -> None:
    """``ValueError`` unless all of them, named, have the same shape."""
    shapes = {name: values.shape for name, values in arrays.items()}
    if len(set(shapes.values())) > 1:
        raise ValueError(
            f"{' and '.join(arrays)} must have the same shape; received {shapes}"
        )


def middle_of(draws: ArrayLike) -> Band:
    """(low, median, high) of the middle 95 % of draws (n,)."""
    low, median, high = np.quantile(np.asarray(draws), [0.025, 0.5, 0.975])
    return float(low), float(median), float(high)


def width(values: ArrayLike, size: float = 0.0) -> float:
    """How far apart values (...) may lie and still be a tie, in their own unit, at least 0.
    The larger of :data:`SHARE` of their :func:`_spread` and :data:`UNITS` in the last place of the
    largest in size, or of ``size``. NaN and infinite values are left out."""
    array = np.asarray(values, dtype=np.float64)
    finite = array[np.isfinite(array)]
    if not len(finite):
        return 0.0
    largest = max(np.abs(finite).max(), size)
    by_spread = SHARE * _spread(finite)
    by_rounding = UNITS * np.spacing(largest)
    return float(max(by_spread, by_rounding))


def _spread(values: np.ndarray) -> float:
    """How far apart values (n,) lie, without a far one.
    The distance of the 5th and 95th percentile (where 0, the range). Of fewer than :data:`FEW`, the
    range without the smallest or without the largest value, whichever is less."""
    if len(values) < 2:
        return 0.0
    if len(values) < FEW:
        rising = np.sort(values)
        without_largest = rising[-2] - rising[0]
        without_smallest = rising[-1] - rising[1]
        return min(without_largest, without_smallest)
    low, high = np.quantile(values, [0.05, 0.95])
    if high > low:
        return high - low
    return np.ptp(values)


def tied(values: ArrayLike, product: bool = False) -> np.ndarray:
    """``values`` (..., n) with near-ties made ties: each group has its lowest value.
    Groups form from the lowest value up, each at most the :func:`width` of all values wide. Each
    row along the last axis is for itself, NaN stays. A ``product`` of probabilities is compared by
    its logarithm. Parts have other widths: tie first."""
    array = np.asarray(values, dtype=np.float64)
    order = np.argsort(array, axis=-1)
    rising = np.take_along_axis(array, order, axis=-1)
    by_log = product and not (array < 0).any()
    scale = rising
    with np.errstate(divide="ignore", invalid="ignore"):
        if by_log:
            scale = np.log(rising)
        widest = width(scale, size=float(by_log))
        gaps = np.diff(scale, axis=-1)
    is_near = gaps <= widest
    is_near_tie = is_near & (gaps > 0)
    if not is_near_tie.any():
        return array
    in_rows = is_near.reshape(-1, gaps.shape[-1])
    places = np.flatnonzero(in_rows.any(axis=0))
    lowest = np.stack([scale, rising])  # of each value's group
    for i in places + 1:
        is_same_group = scale[..., i] - lowest[0, ..., i - 1] <= widest
        lowest[..., i] = np.where(is_same_group, lowest[..., i - 1], lowest[..., i])
    with_ties = np.empty_like(array)
    np.put_along_axis(with_ties, order, lowest[1], axis=-1)
    return with_ties


def reaches(values: ArrayLike, threshold: ArrayLike) -> np.ndarray:
    """Which ``values`` reach ``threshold`` less their :func:`width`; shapes broadcast, NaN not."""
    lowest = np.asarray(threshold, dtype=np.float64) - width(values)
    return np.asarray(values) >= lowest
