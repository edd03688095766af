"""Checks numbers and choices, and makes near-ties ties."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

SHARE, UNITS = 1e-6, 16
"""How wide a tie may be: this share of the values' spread, or so many units in the last place."""
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
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != n_dim:
        raise ValueError(f"{name} must have {n_dim} dimension(s); received shape {found.shape}")
    none = np.isnan(found)
    bad = np.isinf(found) | (found < low) | (found > high) | (none & (not missing))
    if len(only):
        bad |= ~none & ~np.isin(found, only)
    if bad.any():
        allowed = " or ".join(map(str, only)) if len(only) else f"finite, from {low} to {high}"
        more = ", or NaN where missing" if missing else ""
        raise ValueError(f"{name} must be {allowed}{more}; received {found[bad][0]}")
    return found


def check_allowed(name: str, value: Any, allowed: Collection[str]) -> None:
    """``ValueError`` for a ``value`` of ``name`` that is not among those ``allowed``."""
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; allowed are {list(allowed)}")


def same_shape(**arrays: np.ndarray) -> None:
    """``ValueError`` unless all of them, named, have the same shape."""
    shapes = {name: values.shape for name, values in arrays.items()}
    if len(set(shapes.values())) > 1:
        raise ValueError(f"{' and '.join(arrays)} must have the same shape; received {shapes}")


def width(values: ArrayLike, size: float = 0.0) -> float:
    """How far apart values (...) may lie and still be a tie, in their own unit, at least 0.
    The larger of :data:`SHARE` of their :func:`_spread` and :data:`UNITS` in the last place of the
    largest in size, or of ``size``. NaN and infinite values are left out."""
    given = np.asarray(values, dtype=np.float64)
    finite = given[np.isfinite(given)]
    if not len(finite):
        return 0.0
    largest = max(np.abs(finite).max(), size)
    return float(max(SHARE * _spread(finite), UNITS * np.spacing(largest)))


def _spread(values: np.ndarray) -> float:
    """How far apart values (n,) lie, without a far one.
    The distance of the 5th and 95th percentile (where 0, the range). Of fewer than :data:`FEW`, the
    range without the smallest or without the largest value, whichever is less."""
    if len(values) < 2:
        return 0.0
    if len(values) < FEW:
        rising = np.sort(values)
        return min(rising[-2] - rising[0], rising[-1] - rising[1])
    low, high = np.quantile(values, [0.05, 0.95])
    return high - low if high > low else np.ptp(values)


def tied(values: ArrayLike, product: bool = False) -> np.ndarray:
    """``values`` (..., n) with near-ties made ties: each group has its lowest value.
    Groups form from the lowest value up, each at most the :func:`width` of all values wide. Each
    row along the last axis is for itself, NaN stays. A ``product`` of probabilities is compared by
    its logarithm. Parts have other widths: tie first."""
    given = np.asarray(values, dtype=np.float64)
    order = np.argsort(given, axis=-1)
    rising = np.take_along_axis(given, order, axis=-1)
    by_log = product and not (given < 0).any()
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.log(rising) if by_log else rising
        w, gaps = width(scale, size=float(by_log)), np.diff(scale, axis=-1)
    if not ((gaps > 0) & (gaps <= w)).any():
        return given
    lowest = np.stack([scale, rising])
    for i in np.flatnonzero((gaps <= w).reshape(-1, gaps.shape[-1]).any(axis=0)) + 1:
        near = scale[..., i] - lowest[0, ..., i - 1] <= w
        lowest[..., i] = np.where(near, lowest[..., i - 1], lowest[..., i])
    found = np.empty_like(given)
    np.put_along_axis(found, order, lowest[1], axis=-1)
    return found


def reaches(values: ArrayLike, threshold: ArrayLike) -> np.ndarray:
    """Which ``values`` reach ``threshold`` less their :func:`width`; shapes broadcast, NaN not."""
    return np.asarray(values) >= np.asarray(threshold, dtype=np.float64) - width(values)
