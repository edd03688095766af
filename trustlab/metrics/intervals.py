"""Makes 95 % intervals and p-values from what each case adds.

- A share: Agresti & Coull 1998, with Student's quantile for the number of cases and the number of
  independent answers that these cases are worth.
- All else: the jackknife over cases with extreme cases added, so that an interval also holds where
  all answers are alike, or nearly so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtr, stdtrit

Span = tuple[float, float]  # the low end and the high end
LEVEL = 0.975
"""Of each end of an interval."""
MIN_RARER = 10
"""Cases of either outcome from which the spread between cases can be estimated."""


def effective_n(hits: np.ndarray, counts: np.ndarray, uneven: bool = False) -> float:
    """Effective sample size of the answers of cases (C,), for a share of them.

    - ``counts``: answers of each case, above 0; ``hits``: how many of them count, from 0.
    - The number of answers by a design effect of at least 1, from the variance between cases.
    - At most Kish's (Σm)²/Σm² of the counts m if they are ``uneven``, or where the hits, or the
      misses, fill fewer than :data:`MIN_RARER` cases: the variance of so few is not known.
    """
    total = counts.sum()
    n_cases = len(counts)
    if counts.max() == 1:
        return float(total)
    share = hits.sum() / total
    deviations = hits - share * counts
    squares = np.sum(deviations**2)
    between = n_cases / (n_cases - 1) * squares / total**2
    n = float(total)
    if between:
        within = share * (1 - share)
        n = float(min(total, within / between))
    rarer_cases = min(share, 1 - share) * n_cases
    if uneven or rarer_cases < MIN_RARER:
        return min(n, kish_n(counts))
    return n


def kish_n(counts: np.ndarray) -> float:
    """(Σm)²/Σm² of the answers m (C,) of each case: as many cases of equal weight (Kish 1965)."""
    return float(counts.sum() ** 2 / np.sum(counts**2))


def agresti_coull(share: float, n: float, n_cases: int) -> Span:
    """(low, high) of a ``share`` of ``n`` independent answers, in [0, 1]; of at least 2 cases."""
    q = stdtrit(n_cases - 1, LEVEL)
    n_adjusted = n + q**2
    hits_adjusted = share * n + q**2 / 2
    middle = hits_adjusted / n_adjusted
    variance = middle * (1 - middle) / n_adjusted
    reach = q * np.sqrt(variance)
    return around(middle, reach, (0.0, 1.0))


def around(middle: float, reach: float, ends: Span) -> Span:
    """(low, high) that lie ``reach`` below and above ``middle``, but within ``ends``."""
    lowest, highest = ends
    low = max(float(middle - reach), lowest)
    high = min(float(middle + reach), highest)
    return low, high


def jackknife_error(leaves: Sequence[float] | np.ndarray) -> float:
    """The standard error of a statistic, from its values without each of the cases (C,)."""
    n_cases = np.size(leaves)
    return float(np.sqrt((n_cases - 1) * np.var(leaves)))


def with_extremes(value: float, error: float, n: float, ends: Span) -> Span:
    """(low, high) of a statistic, with a case of each of its extreme values ``ends`` added.
    ``error``: its :func:`jackknife_error`; ``n``: how many cases stand behind it, at least 2."""
    middle, variance = with_ends(value, error, n, ends)
    degrees = n + 1
    quantile = stdtrit(degrees, LEVEL)
    standard_error = np.sqrt(variance)
    reach = quantile * standard_error
    return around(middle, reach, ends)


def with_ends(value: float, error: float, n: float, ends: Span) -> tuple[float, float]:
    """A statistic with a case of each of its ``ends`` added, and its variance, which has ``n`` + 1
    degrees of freedom. Arguments as :func:`with_extremes`."""
    n_all = n + 2
    middle = (n * value + sum(ends)) / n_all
    squares_of_cases = _squares_about(value - middle, error, n)
    squares_of_ends = sum((end - middle) ** 2 for end in ends)
    squares = squares_of_cases + squares_of_ends
    degrees = n + 1
    variance = squares / (degrees * n_all)
    return middle, variance


def opposed_p(difference: float, error: float, n: float) -> float:
    """Two-sided p of a difference being 0, with a case added that differs by 1 the other way, the
    most that a difference in [-1, 1] can; by Student's t with ``n`` degrees of freedom.
    Arguments as :func:`with_extremes`; 1 where the added case alone turns the difference round."""
    size = abs(difference)
    n_all = n + 1
    middle = (n * size - 1) / n_all
    square_of_added = (1 + middle) ** 2
    squares = _squares_about(size - middle, error, n) + square_of_added
    standard_error = np.sqrt(squares / (n * n_all))
    t = max(middle, 0.0) / standard_error
    return float(2 * stdtr(n, -t))


def _squares_about(distance: float, error: float, n: float) -> float:
    """The sum of squares of ``n`` cases about a point at a ``distance`` from their value."""
    return (n - 1) * n * error**2 + n * distance**2
