"""Fits a curve that makes a probability of a confidence, and that can be written down."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
from scipy.special import expit, logit, ndtri
from scipy.stats import rankdata

from trustlab.metrics.calibration import Curve, isotonic
from trustlab.metrics.discrimination import has_both_classes

Kind = Literal["isotonic", "logistic"]
Knots = tuple[tuple[float, float], ...]
LEAST_ANSWERS = 200
LEAST_CASES = 100
"""From so many answers and cases on the curve is isotonic; below, a logistic one."""
CLIP = 0.001
"""How near to 0 and 1 a probability counts where its logit is taken."""
MAX_KNOTS = 40
"""Most knots of a logistic curve, evenly by rank of the confidences."""


def kind_for(n_answers: int, n_cases: int) -> Kind:
    """The kind of curve that so many answers of so many cases allow."""
    if n_answers >= LEAST_ANSWERS and n_cases >= LEAST_CASES:
        return "isotonic"
    return "logistic"


def knots_of(
    kind: Kind, is_probability: bool, confidence: np.ndarray, hit: np.ndarray
) -> Knots:
    """The curve that fits confidences (n,) and whether each answer is right (n,), as its knots.

    - (confidence, probability), by rising confidence; straight between two, constant beyond. The
      probability never falls.
    - "isotonic": every step. "logistic": in the logit of a probability, in the normal score of
      another confidence's rank (Platt 1999); at most :data:`MAX_KNOTS` of its points.
    """
    at, first = np.unique(confidence, return_index=True)
    if kind == "isotonic":
        values = isotonic(confidence, hit)(at)
        steps = np.diff(values) > 0
        is_knot = np.append(steps, True) | np.append(True, steps)
        places = np.flatnonzero(is_knot)
    else:
        values = _logistic(_position(confidence, is_probability), hit)[first]
        spaced = np.linspace(0, len(at) - 1, min(len(at), MAX_KNOTS))
        places = np.unique(spaced.round().astype(int))
    return tuple(zip(at[places].tolist(), values[places].tolist(), strict=True))


def curve_of(
    kind: Kind, is_probability: bool, confidence: np.ndarray, hit: np.ndarray
) -> Curve:
    """The curve :func:`through` the knots of this kind that fit best."""
    return through(knots_of(kind, is_probability, confidence, hit))


def through(knots: Knots) -> Curve:
    """The curve through knots."""
    at, values = np.transpose(knots)
    return partial(np.interp, xp=at, fp=values)


def _position(confidence: np.ndarray, is_probability: bool) -> np.ndarray:
    """What a logistic curve is fitted in: the logit, or the normal score of the rank."""
    if is_probability:
        return logit(np.clip(confidence, CLIP, 1 - CLIP))
    ranks = rankdata(confidence)
    return ndtri((ranks - 0.5) / len(ranks))


def _logistic(position: np.ndarray, hit: np.ndarray) -> np.ndarray:
    """The probability of each answer (n,) by the rising logistic curve that fits best.
    As Platt 1999 has it, a right answer counts a little less than 1, a wrong one a little more than
    0. Where the best curve would fall, it is constant."""
    from sklearn.linear_model import LogisticRegression  # it takes time to import

    n_right = hit.sum()
    n_wrong = len(hit) - n_right
    target = np.where(hit, (n_right + 1) / (n_right + 2), 1 / (n_wrong + 2))
    constant = np.full(len(hit), target.mean())
    if not has_both_classes(hit) or np.ptp(position) == 0:
        return constant
    twice = np.concatenate([position, position])
    outcome = np.repeat([1, 0], len(hit))
    weight = np.concatenate([target, 1 - target])
    curve = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000)
    curve.fit(twice[:, None], outcome, sample_weight=weight)
    slope = np.ravel(curve.coef_)[0]
    if slope < 0:
        return constant
    return expit(curve.intercept_ + slope * position)
