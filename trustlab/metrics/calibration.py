"""Does a confidence of 0.8 mean right in 80 of 100? Only for methods whose scale is ``probability``."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trustlab.metrics.discrimination import check_pair, check_weights

TOLERANCE = 1e-9
"""How far outside [0, 1] a probability may lie through rounding."""


def brier(correct: ArrayLike, confidence: ArrayLike) -> float:
    """Mean squared distance of the probability from what happened, in [0, 1]; 0 is best.

    ``correct`` (n,) holds 0 or 1, ``confidence`` (n,) probabilities. NaN without rows. ``ValueError`` on other
    shapes or values.
    """
    hit, prob = _check_probability(correct, confidence)
    return float(np.mean((prob - hit) ** 2)) if len(hit) else float("nan")


def ece(correct: ArrayLike, confidence: ArrayLike, bins: int = 15) -> float:
    """Expected calibration error over ``bins`` equal-mass bins, in [0, 1]; 0 is best.

    A row belongs to the bin in which its mean rank falls, so equal confidences share a bin, the order of the rows
    plays no part, and bins may be empty. Arguments and errors as in :func:`brier`. Biased upwards on few rows.
    """
    hit, prob = _check_probability(correct, confidence)
    return float(ece_weighted(hit, prob, np.ones((1, len(hit))), bins)[0])


def ece_weighted(correct: ArrayLike, confidence: ArrayLike, weights: ArrayLike, bins: int = 15) -> np.ndarray:
    """:func:`ece` under each of B weightings (B, n) of the same rows, bins formed anew in each: shape (B,)."""
    hit, prob = _check_probability(correct, confidence)
    weight = check_weights(weights, len(hit))
    if bins < 1:
        raise ValueError(f"bins must be at least 1; received {bins}")
    if len(hit) == 0:
        return np.full(len(weight), np.nan)
    values, group = np.unique(prob, return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(len(values)))
    ordered = weight.T[order].astype(np.float64)
    mass = np.add.reduceat(ordered, starts, axis=0)
    gap = np.add.reduceat(ordered * (hit - prob)[order, None], starts, axis=0)
    total = mass.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = (np.cumsum(mass, axis=0) - mass / 2) / total
    # A group without weight adds nothing, wherever it is put.
    place = np.minimum(np.nan_to_num(middle * bins), bins - 1).astype(np.int64)
    cell = place + bins * np.arange(len(total))
    gaps = np.bincount(cell.ravel(), weights=gap.ravel(), minlength=bins * len(total)).reshape(len(total), bins)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total > 0, np.abs(gaps).sum(axis=1) / total, np.nan)


def _check_probability(correct: ArrayLike, confidence: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    hit, prob = check_pair(correct, confidence)
    outside = (prob < -TOLERANCE) | (prob > 1 + TOLERANCE)
    if outside.any():
        raise ValueError(f"calibration needs probabilities in [0, 1]; received {prob[outside][0]}")
    return hit, np.clip(prob, 0, 1)
