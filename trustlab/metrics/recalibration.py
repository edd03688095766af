"""Fits a curve that makes a probability of a confidence, and that can be written down."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import logit, ndtri
from scipy.stats import rankdata

from trustlab.metrics.calibration import Knots, isotonic

Kind = Literal["isotonic", "logistic"]
CLIP = 0.001
"""How near to 0 and 1 a probability counts where its logit is taken."""
MAX_KNOTS = 40
"""Most knots of a logistic curve, evenly by rank of the confidences."""


def knots_of(
    kind: Kind, is_probability: bool, confidence: np.ndarray, hit: np.ndarray
) -> Knots:
    """The curve that fits confidences (n,) and whether each answer is right (n,), never falling.

    - "isotonic": every step.
    - "logistic" (Platt 1999): in the logit of a probability, in the normal score of another
      confidence's rank; at most :data:`MAX_KNOTS` of its points.
    """
    if kind == "isotonic":
        return isotonic(confidence, hit)
    chances = _logistic(_position(confidence, is_probability), hit)
    at, first = np.unique(confidence, return_index=True)
    places = np.linspace(0, len(at) - 1, min(len(at), MAX_KNOTS)).round().astype(int)
    return at[places], chances[first][places]


def _position(confidence: np.ndarray, is_probability: bool) -> np.ndarray:
    """What a logistic curve is fitted in: the logit, or the normal score of the rank."""
    if is_probability:
        return logit(np.clip(confidence, CLIP, 1 - CLIP))
    ranks = rankdata(confidence)
    return ndtri((ranks - 0.5) / len(ranks))


def _logistic(position: np.ndarray, hit: np.ndarray) -> np.ndarray:
    """The probability of each answer (n,) by the logistic curve that fits best, a constant where
    that would fall; with scikit-learn's ridge, so that it is finite where the two sides part."""
    from sklearn.linear_model import LogisticRegression  # it takes time to import

    column = position[:, None]
    curve = LogisticRegression().fit(column, hit)
    if curve.decision_function([[1.0]]) < curve.decision_function([[0.0]]):
        return np.full(len(hit), hit.mean())
    return curve.predict_proba(column)[:, 1]
