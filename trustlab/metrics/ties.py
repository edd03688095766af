"""What counts as equal before it is ranked: values that differ by rounding, here or elsewhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

EQUAL = 1e-6
"""Neighbours nearer to each other than this, times their size where that is above 1, are equal."""


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
