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
      confidence's rank; scikit-learn's ridge keeps it finite. At most :data:`MAX_KNOTS` of its
      points, all at the mean where it would fall.
    """
    if kind == "isotonic":
        return isotonic(confidence, hit)
    # Imported here: it takes time at the command line's start, and few runs calibrate.
    from sklearn.linear_model import LogisticRegression

    position = ndtri((rankdata(confidence) - 0.5) / len(confidence))
    if is_probability:
        position = logit(np.clip(confidence, CLIP, 1 - CLIP))
    curve = LogisticRegression().fit(position[:, None], hit)
    chances = curve.predict_proba(position[:, None])[:, 1]
    if curve.coef_[0, 0] < 0:
        chances[:] = hit.mean()
    at, first = np.unique(confidence, return_index=True)
    places = np.linspace(0, len(at) - 1, min(len(at), MAX_KNOTS)).astype(int)
    return at[places], chances[first][places]
