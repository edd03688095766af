"""Do two graders agree? Cohen's kappa, and the counts behind it, with intervals that resample cases."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import cohen_kappa_score

from trustlab.metrics.estimate import bounded_interval, case_weights


def cohen_kappa(a: ArrayLike, b: ArrayLike) -> float:
    """Cohen's kappa of two graders, in [-1, 1]: agreement beyond what their shares of right answers give by chance.

    ``a`` and ``b`` (n,) hold 0 or 1. NaN without rows, or where each says the same of all answers: then agreement and
    chance cannot be told apart. Raises ``ValueError`` on other shapes or values.
    """
    one, other = _check(a, b)
    if len(one) == 0 or (len(np.unique(one)) == 1 and len(np.unique(other)) == 1):
        return float("nan")
    return float(cohen_kappa_score(one, other, labels=[0, 1]))


def cohen_kappa_weighted(a: ArrayLike, b: ArrayLike, weights: ArrayLike) -> np.ndarray:
    """Kappa under each of B weightings (B, n) of the same answers, shape (B,); NaN as in :func:`cohen_kappa`."""
    one, other = _check(a, b)
    weight = np.asarray(weights, dtype=np.float64)
    total = weight.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        right, also, agreed = (weight @ x / total for x in (one, other, one == other))
        chance = right * also + (1 - right) * (1 - also)
        kappa = (agreed - chance) / (1 - chance)
    constant = np.isin(right, (0, 1)) & np.isin(also, (0, 1))
    return np.where(constant, np.nan, kappa)


def agreement(a: ArrayLike, b: ArrayLike, case_ids: ArrayLike, n_draws: int = 2000, seed: int = 0) -> dict[str, Any]:
    """What two graders say of the same n answers: counts, share of agreement, and kappa with its 95 % interval.

    Keys: n, both_right, only_first, only_second, both_wrong, agreement (0 to 1), kappa, low, high, reason. ``case_ids``
    (n,) names the case of each answer; the interval is a percentile bootstrap over cases.
    """
    one, other = _check(a, b)
    counts = {
        "n": len(one),
        "both_right": int((one & other).sum()),
        "only_first": int((one & ~other).sum()),
        "only_second": int((~one & other).sum()),
        "both_wrong": int((~one & ~other).sum()),
        "agreement": float((one == other).mean()) if len(one) else float("nan"),
        "kappa": cohen_kappa(one, other),
    }
    low = high = float("nan")
    reason = ""
    if len(one) == 0:
        reason = "no answer that both graded"
    elif np.isnan(counts["kappa"]):
        reason = "kappa is undefined: each grader says the same of all answers"
    else:
        draws = cohen_kappa_weighted(one, other, case_weights(case_ids, n_draws, seed))
        low, high, reason = bounded_interval(draws, case_ids)
    return {**counts, "low": low, "high": high, "missing": reason}


def _check(a: ArrayLike, b: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    one, other = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if one.ndim != 1 or one.shape != other.shape:
        raise ValueError(f"a and b must both have shape (n,); received {one.shape} and {other.shape}")
    for grades in (one, other):
        if not np.isin(grades, (0.0, 1.0)).all():
            raise ValueError(
                f"grades must be 0 or 1; received {grades[~np.isin(grades, (0.0, 1.0))][0]}: leave ungraded rows out"
            )
    return one.astype(bool), other.astype(bool)
