"""Could this be chance, and how many cases would it take to know? Corrections, errors, numbers.

The standard errors by formula are for independent answers. Six answers of one case are not six
cases: where they are at hand, take the standard error of paired bootstrap draws over cases (the
column ``standard_error`` of ``paired_differences``) instead.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import false_discovery_control, norm

from trustlab.metrics.ties import numbers


def holm(p: ArrayLike) -> np.ndarray:
    """P-values (m,) after Holm's step-down correction. Holm 1979.

    It bounds the chance of any false finding. NaN stays NaN and is no test. Raises
    ``ValueError`` for other shapes or values outside 0 to 1.
    """
    values = numbers("p", p, low=0, high=1, missing=True)
    order = np.argsort(values)[: int(np.sum(~np.isnan(values)))]
    stepped = np.maximum.accumulate(values[order] * np.arange(len(order), 0, -1))
    found = np.full(len(values), np.nan)
    found[order] = np.minimum(stepped, 1)
    return found


def benjamini_hochberg(p: ArrayLike) -> np.ndarray:
    """P-values (m,) adjusted to the false discovery rate: the share of findings that are false.

    Benjamini & Hochberg 1995. NaN stays NaN and is no test. Raises as :func:`holm`.
    """
    values = numbers("p", p, low=0, high=1, missing=True)
    known = ~np.isnan(values)
    found = np.full(len(values), np.nan)
    if known.any():
        found[known] = false_discovery_control(values[known])
    return found


ALPHA = 0.05
"""A corrected p below this is beyond chance."""
NO_VARIANCE = 1e-24
"""A variance below this is rounding."""
MOST = 10_000
"""Past so many cases it only matters that there are more: the difference is next to none."""


def auroc_standard_error(auroc: float, n_right: int, n_wrong: int) -> float:
    """Standard error of an AUROC in [0, 1] over ``n_right`` and ``n_wrong`` independent answers.

    Hanley & McNeil 1982. NaN for a NaN and without an answer of either kind. Also at 0 and 1, where
    the formula gives 0: a perfect order in a sample is no proof of one. ``ValueError`` for an AUROC
    outside [0, 1] or negative counts.
    """
    if not (math.isnan(auroc) or 0 <= auroc <= 1):
        raise ValueError(f"auroc must lie between 0 and 1; received {auroc}")
    if n_right < 0 or n_wrong < 0:
        raise ValueError(f"n_right and n_wrong must be 0 or more; received {n_right} and {n_wrong}")
    if math.isnan(auroc) or auroc in (0, 1) or not (n_right and n_wrong):
        return float("nan")
    two_right = auroc / (2 - auroc)  # Q1: two right answers both surer than one wrong one
    two_wrong = 2 * auroc**2 / (1 + auroc)  # Q2: one right answer surer than two wrong ones
    more = (n_right - 1) * (two_right - auroc**2) + (n_wrong - 1) * (two_wrong - auroc**2)
    spread = auroc * (1 - auroc) + more
    return math.sqrt(spread / (n_right * n_wrong))


def auroc_difference_standard_error(
    a: float, b: float, n_right: int, n_wrong: int, correlation: float
) -> float:
    """Standard error of AUROC ``a`` minus AUROC ``b`` over the same independent answers.

    Hanley & McNeil 1983. ``correlation``, in [-1, 1], is that of the two AUROCs over samples: 0 for
    two separate samples, high where two methods order the answers nearly alike. The source has a
    table that gives it from the correlation of the confidences. NaN and ``ValueError`` as in
    :func:`auroc_standard_error`; NaN also where two errors cancel to nothing.
    """
    if not (math.isnan(correlation) or -1 <= correlation <= 1):
        raise ValueError(f"correlation must lie between -1 and 1; received {correlation}")
    one, other = (
        auroc_standard_error(a, n_right, n_wrong),
        auroc_standard_error(b, n_right, n_wrong),
    )
    variance = one**2 + other**2 - 2 * correlation * one * other
    return math.sqrt(variance) if variance > NO_VARIANCE else float("nan")


def sample_size_for_power(
    difference: float, standard_error: float, n_cases: int, power: float = 0.8, alpha: float = 0.05
) -> float:
    """How many cases would tell ``difference`` from 0 with ``power``: a whole number.

    The test is two-sided, at ``alpha``. ``standard_error`` is that of the difference over
    ``n_cases`` cases; it shrinks with the root of their number, so it takes ``n_cases`` times ((z
    at 1 - alpha/2 plus z at power) standard errors by the difference) squared, at least 2. The
    answer is for a true difference just as large as the one observed, which is a guess: chosen as
    the largest of many, it is too large, and the number too small. NaN where the difference is 0 or
    something is missing or without spread; ``ValueError`` for a negative standard error or number
    of cases, an ``alpha`` outside (0, 1) or a ``power`` not between it and 1.
    """
    if not 0 < alpha < 1 or not alpha < power < 1:
        raise ValueError(
            f"alpha must lie between 0 and 1, power between alpha and 1; got {alpha}, {power}"
        )
    if standard_error < 0 or n_cases < 0:
        raise ValueError(
            f"standard_error and n_cases must be at least 0; got {standard_error}, {n_cases}"
        )
    known = math.isfinite(difference) and math.isfinite(standard_error)
    if not known or difference == 0 or standard_error == 0 or not n_cases:
        return float("nan")
    z = float(norm.ppf(1 - alpha / 2)) + float(norm.ppf(power))
    reach = z * standard_error / abs(difference)
    return float(max(math.ceil(n_cases * reach**2), 2))


def cases_shown(n: float) -> str:
    """A number of cases to read: "1,234", "> 10,000", or "–" where there is none."""
    return "–" if math.isnan(n) else f"> {MOST:,}" if n > MOST else f"{n:,.0f}"
