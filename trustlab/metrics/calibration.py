"""Asks whether a confidence of 0.8 is right in 80 of 100 answers. Brier score, its parts and ECE
are for methods whose scale is ``probability``."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression
from scipy.stats import rankdata

from trustlab.metrics.discrimination import check_pair, check_weights, one_class
from trustlab.metrics.estimate import Metric, Rows, of_answers, of_kind, part
from trustlab.metrics.ties import numbers, same_shape

TOLERANCE = 1e-9  # how far outside [0, 1] a probability may lie through rounding


def brier(correct: ArrayLike, confidence: ArrayLike) -> float:
    """Brier score, the mean squared distance of probability and outcome, in [0, 1]; 0 is best.
    ``correct`` (n,) contains 0 or 1, ``confidence`` (n,) probabilities; else ``ValueError``. The
    score is NaN without rows."""
    hit, prob = _check_probability(correct, confidence)
    return float(np.mean((prob - hit) ** 2)) if len(hit) else float("nan")


def brier_parts_weighted(
    correct: ArrayLike, confidence: ArrayLike, weights: ArrayLike
) -> np.ndarray:
    """Miscalibration, discrimination and uncertainty in each of B weightings (B, n): (B, 3).

    - Brier = miscalibration (0 is best) - discrimination (higher is better) + uncertainty, exactly.
    - By isotonic recalibration in each weighting, without bins (Dimitriadis, Gneiting & Jordan
      2021); on few rows the first two are biased upwards.
    - NaN where the answers are all right or all wrong.
    """
    hit, prob = _check_probability(correct, confidence)
    weight = check_weights(weights, len(hit))
    found = np.full((len(weight), 3), np.nan)
    if len(hit) == 0:
        return found
    values, mass, right = _by_value(prob, weight, hit)
    total = mass.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share, rate = right.sum(axis=0) / total, right / mass
        at = values[:, None]
        score = (mass * at**2 - 2 * right * at + right).sum(axis=0) / total
    for b in np.flatnonzero((share > 0) & (share < 1)):
        held = mass[:, b] > 0
        fit = isotonic_regression(rate[held, b], weights=mass[held, b]).x
        # Each pool's fit is its own rate: the score is the share less the mean square of the fit.
        squared = mass[held, b] @ fit**2 / total[b]
        lost, gained = max(score[b] - share[b] + squared, 0), max(squared - share[b] ** 2, 0)
        found[b] = lost, gained, share[b] * (1 - share[b])
    return found


def ece(correct: ArrayLike, confidence: ArrayLike, bins: int = 15) -> float:
    """Expected calibration error over ``bins`` equal-mass bins, in [0, 1]; 0 is best.
    A row's mean rank decides its bin: equal confidences share one, and bins may be empty.
    Arguments and errors are as in :func:`brier`. ECE is biased upwards on few rows."""
    hit, prob = _check_probability(correct, confidence)
    return float(ece_weighted(hit, prob, np.ones((1, len(hit))), bins)[0])


def ece_weighted(
    correct: ArrayLike, confidence: ArrayLike, weights: ArrayLike, bins: int = 15
) -> np.ndarray:
    """:func:`ece` under each of B weightings (B, n) of the same rows, bins formed anew in each:
    (B,)."""
    hit, prob = _check_probability(correct, confidence)
    weight = check_weights(weights, len(hit))
    if bins < 1:
        raise ValueError(f"bins must be at least 1; received {bins}")
    if len(hit) == 0:
        return np.full(len(weight), np.nan)
    _, mass, gap = _by_value(prob, weight, hit - prob)
    total = mass.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = (np.cumsum(mass, axis=0) - mass / 2) / total
    # A group without weight adds nothing, wherever it is put.
    place = np.minimum(np.nan_to_num(middle * bins), bins - 1).astype(np.int64)
    cell = place + bins * np.arange(len(total))
    gaps = np.bincount(cell.ravel(), gap.ravel(), bins * len(total)).reshape(len(total), bins)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total > 0, np.abs(gaps).sum(axis=1) / total, np.nan)


def ece_by_chance(
    confidence: ArrayLike, bins: int = 15, n_draws: int = 200, seed: int = 0
) -> tuple[float, float, float]:
    """(low, median, high) of the ECE that this ``confidence`` (n,) would have were it calibrated.
    Each answer is drawn right with its confidence as the chance, independently. NaN without rows.
    """
    prob = np.sort(numbers("confidence", confidence, low=0, high=1))
    if not len(prob):
        return np.nan, np.nan, np.nan
    place = np.minimum((rankdata(prob) - 0.5) / len(prob) * bins, bins - 1).astype(int)
    rng = np.random.default_rng(seed)
    gaps = [np.bincount(place, (rng.random(len(prob)) < prob) - prob, bins) for _ in range(n_draws)]
    low, middle, high = np.quantile(np.abs(gaps).sum(axis=1) / len(prob), [0.025, 0.5, 0.975])
    return float(low), float(middle), float(high)


def cross_fitted(
    correct: ArrayLike, confidence: ArrayLike, case_ids: ArrayLike, n_folds: int = 5, seed: int = 0
) -> np.ndarray:
    """Calibrated probabilities (n,), each from an isotonic curve fitted on other cases.

    - ``correct`` (n,) contains 0 or 1, ``confidence`` (n,) finite numbers (higher is surer),
      ``case_ids`` (n,) the case of each row; else ``ValueError``.
    - The folds depend only on the set of cases and the seed; no case is split.
    - All NaN with fewer cases than folds, or where the cases outside a fold have one class.
    """
    # Imported here: they take time at the command line's start, and few runs calibrate.
    from sklearn.isotonic import IsotonicRegression
    from sklearn.model_selection import GroupKFold

    hit, score = check_pair(correct, confidence)
    cases = np.asarray(case_ids)
    same_shape(correct=hit, case_ids=cases)
    if n_folds < 2:
        raise ValueError(f"n_folds must be at least 2; received {n_folds}")
    found = np.full(len(hit), np.nan)
    names, group = np.unique(cases, return_inverse=True)
    if len(names) < n_folds:
        return found
    folds = list(GroupKFold(n_folds, shuffle=True, random_state=seed).split(score, groups=group))
    if any(one_class(hit[train]) for train, _ in folds):
        return found
    for train, test in folds:  # steps, straight lines between: Zadrozny & Elkan 2002
        curve = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        found[test] = curve.fit(score[train], hit[train].astype(float)).predict(score[test])
    return found


def _by_value(
    prob: np.ndarray, weight: np.ndarray, amount: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct probabilities (G,), and the weight and weighed ``amount`` (n,) of each: (G, B)
    twice."""
    values, group = np.unique(prob, return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(len(values)))
    ordered = weight.T[order].astype(np.float64)
    mass = np.add.reduceat(ordered, starts, axis=0)
    return values, mass, np.add.reduceat(ordered * amount[order, None], starts, axis=0)


def _check_probability(correct: ArrayLike, confidence: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    hit, prob = check_pair(correct, confidence)
    prob = numbers("a probability", prob, low=-TOLERANCE, high=1 + TOLERANCE)
    return hit, np.clip(prob, 0, 1)


def brier_over(rows: Rows) -> np.ndarray:
    """:func:`brier` of the rows, (1 + draws,)."""
    hit, prob = _check_probability(rows["correct"], rows["confidence"])
    return rows.mean((prob - hit) ** 2)


_PARTS = of_answers(lambda *given: brier_parts_weighted(*given).T)
CALIBRATION = {
    "brier": Metric(of_kind("brier", brier_over)),
    "miscalibration": Metric(of_kind("miscalibration", part(_PARTS, 0)), excess=True),
    "discrimination": Metric(of_kind("discrimination", part(_PARTS, 1)), excess=True),
    "uncertainty": Metric(of_kind("uncertainty", part(_PARTS, 2))),
    "ece": Metric(of_kind("ece", of_answers(ece_weighted)), excess=True),
}
