"""What is a correlation over a few levels worth? The values that chance alone gives it.

Accuracy rises with information, and so does nearly any confidence. Two series that rise, each by steps of its own that know
nothing of the other, are highly correlated already: the *rising* null. Each series is the running sum of independent positive
increments, exponential and so memoryless, which up to scale are sorted uniform numbers; the two are independent. Over six
points half of such pairs have a Pearson correlation above 0.925, and 95 % one between 0.73 and 0.99; steps that differ less in
size (uniform increments) bring the median to 0.96. Their Spearman correlation is 1, always: over levels that only rise it says
nothing but that both rise. Beside that stands the *unordered* null, in which every order of the one series is as likely: what
the usual p-values hold a coefficient against.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from trustlab.metrics.correlation import pearson_rows, spearman_exact_p, spearman_rows, spearman_values

STATISTICS = {"pearson": pearson_rows, "spearman": spearman_rows}
Band = tuple[float, float, float]
"""Low end, median and high end of what chance gives."""


def rising_null(
    n_points: int = 6, statistic: str = "pearson", n_draws: int = 20_000, seed: int = 0, noise: float = 0.0
) -> np.ndarray:
    """Correlation of ``n_draws`` pairs of unrelated series that merely rise over ``n_points``, (n_draws,), each in [-1, 1].

    ``statistic`` is "pearson" or "spearman". ``noise``: standard deviation of the independent normal error of every point, in
    units of its series' range (last less first point), such as a mean over few cases has; with it a series need not rise at
    every step. Raises ``ValueError`` for fewer than 3 points, less than one draw, another statistic or a negative ``noise``.
    """
    if statistic not in STATISTICS:
        raise ValueError(f"statistic is {statistic!r}; allowed are {list(STATISTICS)}")
    if n_points < 3 or n_draws < 1:
        raise ValueError(f"at least 3 points and 1 draw are needed; received {n_points} and {n_draws}")
    if not 0 <= noise < np.inf:
        raise ValueError(f"noise must be finite and at least 0; received {noise}")
    rng = np.random.default_rng(seed)
    series = np.cumsum(rng.standard_exponential((2, n_draws, n_points)), axis=-1)
    if noise:
        reach = series[..., -1:] - series[..., :1]
        series = series + noise * reach * rng.standard_normal(series.shape)
    return STATISTICS[statistic](*series)


@cache
def rising_band(
    n_points: int = 6,
    statistic: str = "pearson",
    level: float = 0.95,
    n_draws: int = 20_000,
    seed: int = 0,
    noise: float = 0.0,
) -> Band:
    """(low, median, high) of :func:`rising_null`: its middle ``level``. For Spearman without noise all three are 1.

    The other arguments and errors are those of :func:`rising_null`; ``ValueError`` too for a ``level`` outside (0, 1).
    """
    _check_level(level)
    draws = rising_null(n_points, statistic, n_draws, seed, noise)
    low, median, high = np.quantile(draws, [(1 - level) / 2, 0.5, (1 + level) / 2])
    return float(low), float(median), float(high)


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
