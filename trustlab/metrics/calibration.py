"""Asks whether a confidence of 0.8 is right in 80 of 100 answers. Brier score, its parts and ECE
are for methods whose scale is ``probability``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression
from scipy.stats import rankdata

from trustlab.metrics.discrimination import check_pair, has_both_classes, of_answers
from trustlab.metrics.estimate import Metric, Rows, Statistic
from trustlab.metrics.ties import ArrayPair, Band, middle_of, numbers, same_shape

TOLERANCE = 1e-9  # how far outside [0, 1] a probability may lie through rounding


def brier(correct: ArrayLike, confidence: ArrayLike) -> float:
    """Brier score, the mean squared distance of probability and outcome, in [0, 1]; 0 is best.
    ``correct`` (n,) contains 0 or 1, ``confidence`` (n,) probabilities; else ``ValueError``. The
    score is NaN without rows."""
    hit, prob = _check_probability(correct, confidence)
    if not len(hit):
        return float("nan")
    return float(np.mean((prob - hit) ** 2))


def brier_parts(
    correct: ArrayLike, confidence: ArrayLike
) -> tuple[float, float, float]:
    """Miscalibration, discrimination and uncertainty.

    - Brier = miscalibration (0 is best) - discrimination (higher is better) + uncertainty, exactly.
    - By isotonic recalibration, without bins (Dimitriadis, Gneiting & Jordan 2021); on few rows the
      first two are biased upwards.
    - NaN where the answers are all right or all wrong.
    """
    hit, prob = _check_probability(correct, confidence)
    if not has_both_classes(hit):
        return np.nan, np.nan, np.nan
    _, group = np.unique(prob, return_inverse=True)
    mass = np.bincount(group)
    rates = np.bincount(group, hit) / mass
    fit = isotonic_regression(rates, weights=mass).x
    # Each pool's fit is its own rate: the score is the share less the mean square of the fit.
    share = hit.mean()
    mean_square = mass @ fit**2 / len(hit)
    score = np.mean((prob - hit) ** 2)
    miscalibration = max(score - share + mean_square, 0.0)
    discrimination = max(mean_square - share**2, 0.0)
    uncertainty = share * (1 - share)
    return float(miscalibration), float(discrimination), float(uncertainty)


def ece(correct: ArrayLike, confidence: ArrayLike, bins: int = 15) -> float:
    """Expected calibration error over ``bins`` equal-mass bins, in [0, 1]; 0 is best.
    A row's mean rank decides its bin: equal confidences share one, and bins may be empty.
    Arguments and errors are as in :func:`brier`. ECE is biased upwards on few rows."""
    hit, prob = _check_probability(correct, confidence)
    if bins < 1:
        raise ValueError(f"bins must be at least 1; received {bins}")
    if len(hit) == 0:
        return float("nan")
    return float(_calibration_error(_bin_of(prob, bins), hit - prob, bins))


def _calibration_error(places: np.ndarray, residuals: np.ndarray, bins: int) -> float:
    """The mean, over answers (n,), of the absolute gap of their bin, a number from 0."""
    gaps = np.bincount(places, residuals, bins)
    return np.abs(gaps).sum() / len(residuals)


def _bin_of(prob: np.ndarray, bins: int) -> np.ndarray:
    """The equal-mass bin of each probability, (n,), from 0."""
    ranks = rankdata(prob)
    middle = (ranks - 0.5) / len(prob)
    places = np.minimum(middle * bins, bins - 1)
    return places.astype(int)


def ece_by_chance(
    correct: ArrayLike,
    confidence: ArrayLike,
    case_ids: ArrayLike,
    bins: int = 15,
    n_draws: int = 200,
    seed: int = 0,
) -> Band:
    """(low, median, high) of the ECE that this ``confidence`` (n,) would have were it calibrated.

    - Each answer is drawn right with its confidence as the chance. The answers of a case go
      together, as far as they do in the sample (:func:`dependence`).
    - Arguments and errors are as in :func:`ece`, ``case_ids`` (n,). NaN without rows.
    """
    hit, prob = _check_probability(correct, confidence)
    case = np.unique(np.asarray(case_ids), return_inverse=True)[1]
    same_shape(correct=hit, case_ids=case)
    if not len(prob):
        return np.nan, np.nan, np.nan
    share_together = np.sqrt(dependence(hit - prob, prob, case))
    places = _bin_of(prob, bins)
    rng = np.random.default_rng(seed)
    errors = []
    for _ in range(n_draws):
        of_case = rng.random(case.max() + 1)[case]
        is_together = rng.random(len(prob)) < share_together
        of_answer = rng.random(len(prob))
        is_right = np.where(is_together, of_case, of_answer) < prob
        errors.append(_calibration_error(places, is_right - prob, bins))
    return middle_of(errors)


def dependence(residuals: np.ndarray, prob: np.ndarray, case: np.ndarray) -> float:
    """The correlation of two answers of a case, in [0, 1]; 0 without such pairs.
    Over pairs of a case (numbers from 0, (n,)): the products of ``residuals`` (right less ``prob``)
    by those of their standard deviations."""
    deviations = np.sqrt(prob * (1 - prob))
    spread = _pair_products(deviations, case)
    shared = _pair_products(residuals, case)
    if spread > 0:
        return float(np.clip(shared / spread, 0, 1))
    return 0.0


def _pair_products(values: np.ndarray, case: np.ndarray) -> float:
    """The sum of the products of two values (n,), over the pairs of a case."""
    sums = np.bincount(case, values)
    own_products = np.bincount(case, values**2)
    products = sums**2 - own_products
    return float(products.sum() / 2)


Knots = tuple[np.ndarray, np.ndarray]
"""A rising curve: confidences (m,) and their probabilities (m,), straight lines between."""


def isotonic(confidence: np.ndarray, hit: np.ndarray) -> Knots:
    """The rising curve that fits best, in steps: Zadrozny & Elkan 2002."""
    # Imported here: it takes time at the command line's start, and few runs calibrate.
    from sklearn.isotonic import IsotonicRegression

    curve = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    curve.fit(confidence, hit.astype(float))
    return curve.X_thresholds_, curve.y_thresholds_


def cross_fitted(
    correct: ArrayLike,
    confidence: ArrayLike,
    case_ids: ArrayLike,
    n_folds: int = 5,
    seed: int = 0,
    fit: Callable[[np.ndarray, np.ndarray], Knots] = isotonic,
) -> np.ndarray:
    """Calibrated probabilities (n,), each from a curve fitted on other cases.

    - ``correct`` (n,) contains 0 or 1, ``confidence`` (n,) finite numbers (higher is surer),
      ``case_ids`` (n,) the case of each row; else ``ValueError``.
    - ``fit``: makes a curve of confidences (m,) and whether each answer is right (m,); it is
      constant beyond its ends.
    - The folds depend only on the set of cases and the seed; no case is split.
    - All NaN with fewer cases than folds, or where the cases outside a fold have one class.
    """
    from sklearn.model_selection import GroupKFold  # here for the same reason

    hit, score = check_pair(correct, confidence)
    cases = np.asarray(case_ids)
    same_shape(correct=hit, case_ids=cases)
    if n_folds < 2:
        raise ValueError(f"n_folds must be at least 2; received {n_folds}")
    calibrated = np.full(len(hit), np.nan)
    names, group = np.unique(cases, return_inverse=True)
    if len(names) < n_folds:
        return calibrated
    splitter = GroupKFold(n_folds, shuffle=True, random_state=seed)
    folds = list(splitter.split(score, groups=group))
    if not all(has_both_classes(hit[train]) for train, _ in folds):
        return calibrated
    for train, test in folds:
        at, chances = fit(score[train], hit[train])
        calibrated[test] = np.interp(score[test], at, chances)
    return calibrated


def _check_probability(correct: ArrayLike, confidence: ArrayLike) -> ArrayPair:
    hit, prob = check_pair(correct, confidence)
    prob = numbers("a probability", prob, low=-TOLERANCE, high=1 + TOLERANCE)
    return hit, np.clip(prob, 0, 1)


def _brier(rows: Rows) -> np.ndarray:
    hit, prob = _check_probability(rows["correct"], rows["confidence"])
    return rows.mean((prob - hit) ** 2)


def _part_of_brier(place: int) -> Metric:
    """The part of the Brier score at a place of :func:`brier_parts`."""

    def part(correct: ArrayLike, confidence: ArrayLike) -> float:
        return brier_parts(correct, confidence)[place]

    return Metric(of_answers(part))


CALIBRATION = {
    "brier": Metric(Statistic(_brier, "brier")),
    "miscalibration": _part_of_brier(0),
    "discrimination": _part_of_brier(1),
    "uncertainty": _part_of_brier(2),
    "ece": Metric(of_answers(ece)),
}
