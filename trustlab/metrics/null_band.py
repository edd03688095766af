"""What is a correlation over a few levels worth? The values that chance alone gives it.

Accuracy rises with information, and so does nearly any confidence, whatever it knows of the
answers: the *rising* null. A run's accuracies are known, and stay as they are; what is drawn is a
confidence that merely rises, the running sum of independent positive steps, exponential and so
memoryless. How high the two correlate depends on the accuracies alone. Six that rise evenly give a
Pearson correlation of 0.96 (median; 95 % lie between 0.86 and 0.99), a curve that climbs early and
then flattens (16, 64, 82, 90, 95, 96 %) one of 0.84 (0.62 to 0.99). Spearman's is the same for
every rising confidence: 1 where accuracy rises at each step, less where it dips or stays.

Where no accuracies are known, as for a coefficient in a published table, both series are drawn:
over six points 0.925 (0.73 to 0.99), an average over curves that stands for none of them. Beside
the rising null stands the *unordered* one, in which every order of the one series is as likely:
what the usual p-values hold a coefficient against.
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from trustlab.metrics.correlation import pearson_rows, spearman_exact_p, spearman_rows, spearman_values

STATISTICS = {"pearson": pearson_rows, "spearman": spearman_rows}
Band = tuple[float, float, float]
"""Low end, median and high end of what chance gives."""


def rising_null(
    accuracies: int | ArrayLike,
    statistic: str = "pearson",
    n_draws: int = 20_000,
    seed: int = 0,
    noise: float = 0.0,
) -> np.ndarray:
    """Correlation of ``accuracies`` (n,) with confidences that merely rise, (n_draws,) in [-1, 1].

    In place of accuracies that are not known stands their number: then both series are drawn.
    ``statistic`` is "pearson" or "spearman". ``noise``: standard deviation of the independent
    normal error of every drawn point, in units of its series' range (last less first point), such
    as a mean over few cases has; with it a series need not rise at every step. NaN where all
    accuracies are the same. Raises ``ValueError`` for fewer than 3 points, accuracies that are not
    finite, less than one draw, another statistic or a negative ``noise``.
    """
    fixed = _fixed(accuracies)
    n_points = fixed if isinstance(fixed, int) else len(fixed)
    if statistic not in STATISTICS:
        raise ValueError(f"statistic is {statistic!r}; allowed are {list(STATISTICS)}")
    if n_points < 3 or n_draws < 1:
        raise ValueError(f"at least 3 points and 1 draw are needed; received {n_points} and {n_draws}")
    if not 0 <= noise < np.inf:
        raise ValueError(f"noise must be finite and at least 0; received {noise}")
    n_drawn = 2 if isinstance(fixed, int) else 1
    rng = np.random.default_rng(seed)
    series = np.cumsum(rng.standard_exponential((n_drawn, n_draws, n_points)), axis=-1)
    if noise:
        reach = series[..., -1:] - series[..., :1]
        series = series + noise * reach * rng.standard_normal(series.shape)
    first = series[0] if isinstance(fixed, int) else np.tile(fixed, (n_draws, 1))
    return STATISTICS[statistic](first, series[-1])


def rising_band(
    accuracies: int | ArrayLike,
    statistic: str = "pearson",
    level: float = 0.95,
    n_draws: int = 20_000,
    seed: int = 0,
    noise: float = 0.0,
) -> Band:
    """(low, median, high) of :func:`rising_null`: its middle ``level``; for Spearman all alike.

    The other arguments, NaN and errors are those of :func:`rising_null`; ``ValueError`` too for a
    ``level`` outside (0, 1).
    """
    return _rising_band(_fixed(accuracies), statistic, level, n_draws, seed, noise)


@lru_cache(maxsize=4096)
def _rising_band(
    fixed: int | tuple[float, ...],
    statistic: str,
    level: float,
    n_draws: int,
    seed: int,
    noise: float,
) -> Band:
    _check_level(level)
    n_draws = n_draws if noise or statistic != "spearman" else min(n_draws, 1)  # they are alike
    draws = rising_null(fixed, statistic, n_draws, seed, noise)
    low, median, high = np.quantile(draws, [(1 - level) / 2, 0.5, (1 + level) / 2])
    return float(low), float(median), float(high)


def _fixed(accuracies: int | ArrayLike) -> int | tuple[float, ...]:
    """The accuracies as numbers that can be looked up, or how many they are."""
    values = np.asarray(accuracies)
    if values.ndim == 0 and np.issubdtype(values.dtype, np.integer):
        return int(values)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"accuracies must be finite, (n,), or their number; received {accuracies}")
    return tuple(values.astype(float).tolist())


@cache
def unordered_band(n_points: int = 6, level: float = 0.95) -> Band:
    """(low, median, high) of Spearman's rho of two unrelated series of ``n_points`` in any order, without ties; exact.

    ``high`` is the critical value: the smallest rho that at most 1 - ``level`` of all orders reach or pass in size (0.886 for
    six points and 5 %), ``low`` its negative; NaN where no value is so rare, as below 5 points at 5 %. Raises ``ValueError``
    for fewer than 3 points or more than 8, or a ``level`` outside (0, 1).
    """
    _check_level(level)
    values = spearman_values(n_points)
    rare = [v for v in values[values > 0] if spearman_exact_p(v, n_points, rounding=0) <= 1 - level]
    critical = float(min(rare)) if rare else float("nan")
    return -critical, 0.0, critical


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1; received {level}")
