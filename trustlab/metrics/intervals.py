"""Bootstrap intervals whose unit of resampling is the case, with everything that belongs to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

MAX_UNDEFINED = 0.1
"""Largest share of draws without a value under which an interval is still given."""
MIN_CASES = 10
"""Fewer cases than this give no interval: resampling three patients says nothing of a fourth."""
TOO_FEW = f"no interval: fewer than {MIN_CASES} cases"
UNDEFINED = f"no interval: undefined in more than {100 * MAX_UNDEFINED:.0f} % of the draws"
ALIKE = 1e-12
"""Draws nearer to each other than this differ by rounding alone (times the draws' size, where that is above 1)."""


def enough_cases(case_ids: ArrayLike) -> bool:
    """Whether ``case_ids`` (n,) name enough different cases for an interval."""
    return len(np.unique(np.asarray(case_ids))) >= MIN_CASES


def case_weights(case_ids: ArrayLike, n_draws: int = 2000, seed: int = 0) -> np.ndarray:
    """How often each row is in each bootstrap draw, shape (n_draws, n), integers.

    ``case_ids`` (n,) names each row's case. Cases are drawn with replacement, as many as there are, and all rows of
    a case come with it. The same set of cases and seed give every case the same draws, whatever the rows' order or number.
    Raises ``ValueError`` without rows or draws.
    """
    ids = np.asarray(case_ids)
    if ids.ndim != 1 or len(ids) == 0:
        raise ValueError(f"case_ids must have shape (n,) with n at least 1; received {ids.shape}")
    if n_draws < 1:
        raise ValueError(f"n_draws must be at least 1; received {n_draws}")
    cases, code = np.unique(ids, return_inverse=True)
    times = np.random.default_rng(seed).multinomial(len(cases), np.full(len(cases), 1 / len(cases)), size=n_draws)
    return np.ascontiguousarray(times.T.astype(np.int32))[code].T


def percentile_interval(draws: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """(low, high) between which the middle ``level`` of the draws (B,) lies.

    Undefined draws (NaN) are left out; both ends are NaN when more than 10 % are undefined. Raises ``ValueError``
    for no draws, infinite ones or a ``level`` outside (0, 1).
    """
    values = checked_draws(draws)
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1; received {level}")
    known = values[~np.isnan(values)]
    if len(values) - len(known) > MAX_UNDEFINED * len(values):
        return float("nan"), float("nan")
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def bounded_interval(draws: ArrayLike, case_ids: ArrayLike, level: float = 0.95) -> tuple[float, float, str]:
    """(low, high, reason): :func:`percentile_interval` of the draws (B,), or NaN twice and why there is none.

    ``case_ids`` (n,) names the cases of the rows that were resampled. None below 10 cases, where more than 10 % of the draws
    are undefined, or where the middle draws are all alike, since an interval without width would claim certainty; ``reason``
    is '' where there is one. Raises as :func:`percentile_interval`.
    """
    values = checked_draws(draws)
    nothing = float("nan")
    if not enough_cases(case_ids):
        return nothing, nothing, TOO_FEW
    low, high = percentile_interval(values, level)
    if np.isnan(low):
        return nothing, nothing, UNDEFINED
    if all_alike(np.array([low, high])):
        known = values[~np.isnan(values)]
        return nothing, nothing, f"no interval: {'all' if all_alike(known) else 'nearly all'} draws alike"
    return low, high, ""


def all_alike(values: np.ndarray) -> bool:
    """Whether the finite values (n,) are one and the same up to rounding; so are none."""
    return len(values) == 0 or bool(np.ptp(values) <= ALIKE * max(1.0, float(np.abs(values).max())))


def checked_draws(draws: ArrayLike) -> np.ndarray:
    """``draws`` as an array (B,); ``ValueError`` without any, for other shapes, or infinite ones."""
    values = np.asarray(draws, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"draws must have shape (B,) with B at least 1; received {values.shape}")
    if np.isinf(values).any():
        raise ValueError(f"draws must be finite, or NaN where undefined; received {values[np.isinf(values)][0]}")
    return values
