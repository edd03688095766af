"""An interval from leaving one case out at a time, for statistics that a bootstrap distorts.

A case that is drawn twice brings its diagnoses twice; a statistic that compares cases, such as a kappa, takes that for chance
agreement, and the whole bootstrap distribution shifts. Left-out cases repeat nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t

from trustlab.metrics.intervals import MIN_CASES, TOO_FEW, all_alike


def jackknife_interval(
    value: float, left_out: ArrayLike, level: float = 0.95, most: float = float("inf")
) -> tuple[float, float, str]:
    """(low, high, reason): ``value`` plus and minus Student's t times its jackknife standard error; it holds ``value``.

    ``left_out`` (n,) is the statistic without each of the n cases in turn, ``most`` the largest that it can be, where ``high`` is
    cut. The standard error is sqrt((n - 1) / n times the sum of squares around their mean), with n - 1 degrees of freedom: Efron
    & Tibshirani 1993, ch. 11, as Gwet 2014 has it for AC1. NaN twice and the reason below 10 cases, for a NaN, or where
    all are alike. Raises ``ValueError`` for other shapes, infinite values or a ``level`` outside (0, 1).
    """
    each, nothing = np.asarray(left_out, dtype=np.float64), float("nan")
    if each.ndim != 1 or np.isinf(each).any() or np.isinf(value):
        raise ValueError(f"left_out must be (n,) and finite, like value; received shape {each.shape} and value {value}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1; received {level}")
    if len(each) < MIN_CASES:
        return nothing, nothing, TOO_FEW
    if np.isnan(each).any() or np.isnan(value):
        return nothing, nothing, "no interval: undefined without one of the cases"
    if all_alike(each):
        return nothing, nothing, "no interval: the same without any one of the cases"
    n = len(each)
    error = np.sqrt((n - 1) / n * np.sum((each - each.mean()) ** 2))
    reach = float(t.ppf((1 + level) / 2, n - 1)) * error
    return float(value - reach), float(min(value + reach, most)), ""
