"""Does a confidence stay put when the question is asked in a changed way? Coefficients of variation over conditions.

A coefficient of variation (CV) is a population standard deviation by a mean, in percent. It means something only for a
confidence on a ratio scale, whose nought is a nought (:data:`RATIO`). A constant confidence has CV 0 and knows nothing:
read a CV beside how well the method tells right from wrong. Ren et al. 2026, robustness; percent, population standard
deviation and intervals are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from trustlab.metrics.estimate import TOO_FEW, case_weights, enough_cases, percentile_interval

RATIO = (
    "asp", "msp", "sequence_probability", "min_token_probability", "ccp", "ccp_min", "ccp_mean", "poc", "semantic_poc", "ce",
    "cot_ce", "topk_ce", "p_true", "medconf", "medconf_weighted", "deg", "lexical_similarity", "num_set",
)  # fmt: skip
"""Methods on a ratio scale: the probabilities, and the scores whose nought means none."""

SHUFFLED = 100
"""Shufflings at a time, to keep memory small."""
Drawn = Callable[[np.ndarray], np.ndarray]

UNDEFINED = "the mean confidence is 0"
ALIKE = "no interval: all values are alike"
"""Resampling values that are all alike would claim certainty."""
NO_SPREAD = 1e-12
"""A standard deviation below this is rounding, and counts as 0."""


@dataclass(frozen=True)
class Variation:
    """A coefficient of variation in percent with its interval over cases, and the rows behind it.

    ``n`` rows of ``n_cases`` cases were used; ``n_missing`` lack a value in some condition; ``n_zero`` have mean 0, so that
    their own CV is undefined. ``reason`` says why ``value`` or the interval is NaN.
    """

    value: float
    low: float
    high: float
    n: int
    n_cases: int
    n_missing: int
    n_zero: int
    reason: str = ""


def cv_group(confidence: ArrayLike, case_ids: ArrayLike, n_draws: int = 2000, seed: int = 0) -> Variation:
    """How far the mean confidence differs between conditions: sd of the conditions' means by their mean, in percent.

    ``confidence`` (n, C): a row for each case (and level), a column for each condition, at least two; NaN where missing. Rows
    that lack a value in any condition are left out of all, so that the conditions are compared on the same rows.
    ``case_ids`` (n,) names each row's case. Raises ``ValueError`` on other shapes, infinite or negative values.
    """
    rows, cases, n_missing = _complete(confidence, case_ids)
    zero = int(np.sum(rows.mean(axis=1) == 0)) if len(rows) else 0
    alike = min(rows.std(axis=0).max(), rows.std(axis=1).max()) < NO_SPREAD if len(rows) else False
    value = float(_cv(rows.mean(axis=0))) if len(rows) else float("nan")

    return _variation(value, partial(cv_group_weighted, rows), cases, n_missing, zero, n_draws, seed, bool(alike))


def cv_group_by_chance(confidence: ArrayLike, n_draws: int = 2000, seed: int = 0) -> float:
    """The CV group (percent) that 95 % of ``n_draws`` shufflings of the conditions' labels within each row stay at or below.

    What conditions that are exchangeable would give: their means differ a little even then, and a CV cannot be below 0, so
    that an interval never holds it. ``confidence`` as in :func:`cv_group`; NaN without a whole row or with mean 0.
    """
    rows, *_ = _complete(confidence, np.zeros(len(np.asarray(confidence))))
    if not len(rows):
        return float("nan")
    rng = np.random.default_rng(seed)
    means = [
        np.take_along_axis(rows[None], rng.random((some, *rows.shape)).argsort(axis=2), axis=2).mean(axis=1)
        for some in np.diff([*range(0, n_draws, SHUFFLED), n_draws])
    ]
    return float(np.quantile(_cv(np.concatenate(means)), 0.95))


def cv_sample(confidence: ArrayLike, case_ids: ArrayLike, n_draws: int = 2000, seed: int = 0) -> Variation:
    """How far one answer's confidence differs between conditions: the mean over rows of sd by mean, in percent.

    Arguments and errors as in :func:`cv_group`. A row whose confidences are all 0 has no CV: it is left out and counted.
    """
    rows, cases, n_missing = _complete(confidence, case_ids)
    zero = rows.mean(axis=1) == 0 if len(rows) else np.zeros(0, bool)
    each, cases = _cv(rows[~zero]), cases[~zero]
    value = float(each.mean()) if len(each) else float("nan")

    alike = bool(len(each)) and bool(each.std() < 100 * NO_SPREAD)
    drawn = partial(cv_sample_weighted, rows[~zero])
    return _variation(value, drawn, cases, n_missing, int(zero.sum()), n_draws, seed, alike)


def cv_group_weighted(confidence: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """CV group in percent under each of B weightings (B, n) of the whole rows ``confidence`` (n, C), shape (B,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return _cv(weights @ confidence / weights.sum(axis=1, keepdims=True))


def cv_sample_weighted(confidence: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """CV sample in percent under each of B weightings (B, n) of the whole rows ``confidence`` (n, C), shape (B,).

    NaN where a row's mean is 0: leave those out.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return weights @ _cv(confidence) / weights.sum(axis=1)


def _complete(confidence: ArrayLike, case_ids: ArrayLike) -> tuple[np.ndarray, np.ndarray, int]:
    """The rows with a value in every condition, their cases, and how many others there are."""
    table, cases = np.asarray(confidence, dtype=np.float64), np.asarray(case_ids)
    if table.ndim != 2 or table.shape[1] < 2 or cases.shape != table.shape[:1]:
        raise ValueError(f"confidence must be (n, C) with C at least 2, case_ids (n,); received {table.shape} and {cases.shape}")
    if np.isinf(table).any() or (table < 0).any():
        raise ValueError("a confidence on a ratio scale is finite and at least 0")
    whole = ~np.isnan(table).any(axis=1)
    return table[whole], cases[whole], int(np.sum(~whole))


def _cv(values: np.ndarray) -> np.ndarray:
    """Population standard deviation by mean over the last axis, in percent; NaN where the mean is 0."""
    mean, sd = values.mean(axis=-1), values.std(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mean > 0, 100 * np.where(sd < NO_SPREAD, 0, sd) / mean, np.nan)


def _variation(
    value: float, drawn: Drawn, cases: np.ndarray, n_missing: int, n_zero: int, n_draws: int, seed: int, alike: bool
) -> Variation:
    counts = {"n": len(cases), "n_cases": len(np.unique(cases)), "n_missing": n_missing, "n_zero": n_zero}
    nan = float("nan")
    if np.isnan(value):
        why = UNDEFINED if n_zero or len(cases) else "no row has a value in every condition"
        return Variation(nan, nan, nan, **counts, reason=why)
    if not enough_cases(cases):
        return Variation(value, nan, nan, **counts, reason=TOO_FEW)
    if alike:
        return Variation(value, nan, nan, **counts, reason=ALIKE)
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = percentile_interval(drawn(case_weights(cases, n_draws, seed).astype(np.float64)))
    return Variation(
        value, low, high, **counts, reason="" if low == low else "no interval: undefined in more than 10 % of the draws"
    )
