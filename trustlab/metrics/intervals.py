"""Makes 95 % intervals and p-values from what each case adds.

- A share: Agresti & Coull 1998, with Student's quantile for the number of cases and the number of
  independent answers that these cases are worth.
- A statistic of pairs: the jackknife over cases with extreme cases added, so that an interval also
  holds where all answers are alike, or nearly so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

LEVEL = 0.975
"""Of each end of an interval."""
MIN_RARER = 10
"""Cases of either outcome from which the spread between cases can be estimated."""


def effective_n(hits: ArrayLike, counts: ArrayLike) -> float:
    """How many independent answers the answers of cases (C,) are worth, for a share of them.

    - ``counts``: answers of each case, above 0; ``hits``: how many of them count, from 0.
    - Their number by a design effect of at least 1, from the variance between cases. Kish's
      (Σm)²/Σm² of the counts m where fewer than :data:`MIN_RARER` cases have a hit, or a miss.
    """
    each, of = np.asarray(hits, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    total, n_cases = of.sum(), len(of)
    rarer = min(np.count_nonzero(each > 0), np.count_nonzero(each < of))
    if rarer < MIN_RARER or of.max() == 1:
        return kish_n(of)
    share = each.sum() / total
    between = n_cases / (n_cases - 1) * np.sum((each - share * of) ** 2) / total**2
    return float(min(total, share * (1 - share) / between) if between else total)


def kish_n(counts: ArrayLike) -> float:
    """(Σm)²/Σm² of the answers m (C,) of each case: as many cases of equal weight (Kish 1965)."""
    of = np.asarray(counts, dtype=np.float64)
    return float(of.sum() ** 2 / np.sum(of**2))


def agresti_coull(share: float, n: float, n_cases: int) -> tuple[float, float]:
    """(low, high) of a ``share`` of ``n`` independent answers, in [0, 1]; of at least 2 cases."""
    q = student.ppf(LEVEL, n_cases - 1)
    middle = (share * n + q**2 / 2) / (n + q**2)
    reach = q * np.sqrt(middle * (1 - middle) / (n + q**2))
    return max(float(middle - reach), 0.0), min(float(middle + reach), 1.0)


def jackknife_error(leaves: ArrayLike) -> float:
    """The standard error of a statistic, from its values without each of the cases (C,)."""
    values = np.asarray(leaves, dtype=np.float64)
    return float(np.sqrt((len(values) - 1) * np.var(values)))


def with_extremes(
    value: float, error: float, n: int, ends: tuple[float, float]
) -> tuple[float, float]:
    """(low, high) of a statistic, with a case of each of its extreme values ``ends`` added.
    ``error``: its :func:`jackknife_error`; ``n``: cases of the rarer outcome, at least 2."""
    middle = (n * value + sum(ends)) / (n + 2)
    squares = (n - 1) * n * error**2 + n * (value - middle) ** 2
    squares += sum((end - middle) ** 2 for end in ends)
    reach = student.ppf(LEVEL, n + 1) * np.sqrt(squares / ((n + 1) * (n + 2)))
    return max(float(middle - reach), ends[0]), min(float(middle + reach), ends[1])


def opposed_p(difference: ArrayLike, error: ArrayLike, n: ArrayLike) -> np.ndarray:
    """Two-sided p of a difference being 0, with one case added that differs by 1 the other way.
    As :func:`with_extremes`, element by element; 1 where the added case alone turns it round."""
    t = opposed_t(difference, error, n)
    return np.where(t > 0, 2 * student.sf(t, n), 1.0)


def opposed_t(difference: ArrayLike, error: ArrayLike, n: ArrayLike) -> np.ndarray:
    """Student's t of :func:`opposed_p`, with ``n`` degrees of freedom."""
    size, cases = np.abs(difference), np.asarray(n, dtype=np.float64)
    middle = (cases * size - 1) / (cases + 1)
    squares = (cases - 1) * cases * np.square(error) + cases * (size - middle) ** 2
    squares += (1 + middle) ** 2
    return middle / np.sqrt(squares / (cases * (cases + 1)))
