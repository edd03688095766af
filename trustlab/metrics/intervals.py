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

LEVEL = 0.975
"""Of each end of an interval."""
MIN_RARER = 10
"""Cases of either outcome from which the spread between cases can be estimated."""


def effective_n(hits: np.ndarray, counts: np.ndarray, uneven: bool = False) -> float:
    """How many independent answers the answers of cases (C,) are worth, for a share of them.

    - ``counts``: answers of each case, above 0; ``hits``: how many of them count, from 0.
    - Their number by a design effect of at least 1, from the variance between cases. At most
      Kish's (Σm)²/Σm² of the counts m if they are ``uneven``, or where the hits, or the misses,
      fill fewer than :data:`MIN_RARER` cases: the variance of so few is not known.
    """
    total, n_cases = counts.sum(), len(counts)
    if counts.max() == 1:
        return float(total)
    share = hits.sum() / total
    between = n_cases / (n_cases - 1) * np.sum((hits - share * counts) ** 2) / total**2
    n = float(min(total, share * (1 - share) / between) if between else total)
    few = min(share, 1 - share) * n_cases < MIN_RARER
    return min(n, kish_n(counts)) if few or uneven else n


def kish_n(counts: np.ndarray) -> float:
    """(Σm)²/Σm² of the answers m (C,) of each case: as many cases of equal weight (Kish 1965)."""
    return float(counts.sum() ** 2 / np.sum(counts**2))


def agresti_coull(share: float, n: float, n_cases: int) -> tuple[float, float]:
    """(low, high) of a ``share`` of ``n`` independent answers, in [0, 1]; of at least 2 cases."""
    q = stdtrit(n_cases - 1, LEVEL)
    middle = (share * n + q**2 / 2) / (n + q**2)
    reach = q * np.sqrt(middle * (1 - middle) / (n + q**2))
    return max(float(middle - reach), 0.0), min(float(middle + reach), 1.0)


def jackknife_error(leaves: Sequence[float] | np.ndarray) -> float:
    """The standard error of a statistic, from its values without each of the cases (C,)."""
    return float(np.sqrt((np.size(leaves) - 1) * np.var(leaves)))


def with_extremes(
    value: float, error: float, n: float, ends: tuple[float, float]
) -> tuple[float, float]:
    """(low, high) of a statistic, with a case of each of its extreme values ``ends`` added.
    ``error``: its :func:`jackknife_error`; ``n``: how many cases stand behind it, at least 2."""
    middle = (n * value + sum(ends)) / (n + 2)
    squares = (n - 1) * n * error**2 + n * (value - middle) ** 2
    squares += sum((end - middle) ** 2 for end in ends)
    reach = stdtrit(n + 1, LEVEL) * np.sqrt(squares / ((n + 1) * (n + 2)))
    return max(float(middle - reach), ends[0]), min(float(middle + reach), ends[1])


def opposed_p(difference: float, error: float, n: float) -> float:
    """Two-sided p of a difference being 0, with a case added that differs by 1 the other way, the
    most that a difference in [-1, 1] can; by Student's t with ``n`` degrees of freedom.
    Arguments as :func:`with_extremes`; 1 where the added case alone turns the difference round."""
    middle = (n * abs(difference) - 1) / (n + 1)
    squares = (n - 1) * n * error**2 + n * (abs(difference) - middle) ** 2 + (1 + middle) ** 2
    ratio = max(middle, 0.0) / np.sqrt(squares / (n * (n + 1)))
    return float(2 * stdtr(n, -ratio))
