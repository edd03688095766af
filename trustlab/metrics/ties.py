"""What goes into a formula: numbers that are checked, and near-ties made ties before a ranking."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

EQUAL = 1e-6
"""Neighbours nearer to each other than this, times their size where that is above 1, are equal."""


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

    ``ValueError``, which calls them ``name`` and tells the first bad one, for another shape, what
    is not finite (``missing``: NaN is allowed), outside ``low`` to ``high`` or not among ``only``.
    """
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


def same_shape(**arrays: np.ndarray) -> None:
    """``ValueError`` unless all of them, named, have the same shape."""
    shapes = {name: values.shape for name, values in arrays.items()}
    if len(set(shapes.values())) > 1:
        raise ValueError(f"{' and '.join(arrays)} must have the same shape; received {shapes}")


def tied(values: ArrayLike) -> np.ndarray:
    """``values`` (..., n) with near-ties made ties: a chain of neighbours has its lowest value.

    Neighbours are closer than :data:`EQUAL`, so that the ends of a chain may lie further apart.
    Each row along the last axis is for itself, NaN stays. What has been tied once stays as it is,
    and so do its parts.
    """
    given = np.asarray(values, dtype=np.float64)
    order = np.argsort(given, axis=-1)
    rising = np.take_along_axis(given, order, axis=-1)
    before, after = rising[..., :-1], rising[..., 1:]
    size = np.maximum(1, np.maximum(-before, after))  # of the larger of the two
    with np.errstate(invalid="ignore", over="ignore"):
        near = after - before < EQUAL * size
    if not (near & (after > before)).any():
        return given
    starts = np.zeros(given.shape, dtype=np.intp)
    starts[..., 1:] = np.where(near, 0, np.arange(1, given.shape[-1]))
    lowest = np.take_along_axis(rising, np.maximum.accumulate(starts, axis=-1), axis=-1)
    found = np.empty_like(given)
    np.put_along_axis(found, order, lowest, axis=-1)
    return found


def reaches(values: ArrayLike, threshold: ArrayLike) -> np.ndarray:
    """Which ``values`` are at least ``threshold``, near-ties too; shapes broadcast, NaN is not."""
    bar = np.asarray(threshold, dtype=np.float64)
    return np.asarray(values) > np.minimum(bar - EQUAL, bar * (1 - EQUAL * np.sign(bar)))
