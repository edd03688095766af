"""The best of several against a reference, which being chosen on the same cases flatters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trustlab.metrics.estimate import NAN, enough_cases, interval
from trustlab.metrics.ties import numbers, tied


@dataclass(frozen=True)
class Best:
    """The best of M methods, and how far it is from a reference. NaN where there is none.

    - ``which``: its place among the M, the first of equals; ``tied`` are the others.
    - ``difference``: best minus reference; ``low``, ``high``, ``p`` and ``standard_error`` as if
      this method had been named beforehand, ``low_chosen`` and ``high_chosen`` whoever is best;
      ``reason`` says why there is no interval.
    """

    which: int
    tied: tuple[int, ...]
    chosen_in: float
    difference: float
    low: float
    high: float
    p: float
    standard_error: float
    low_chosen: float
    high_chosen: float
    reason: str


def best_against(
    values: ArrayLike,
    draws: ArrayLike,
    reference: float,
    reference_draws: ArrayLike,
    case_ids: ArrayLike,
    lowest: bool = False,
) -> Best:
    """The best of M methods, (M,) and draws (M, B), against one with a value and draws (B,).

    - All are of the same cases in the same draws. ``lowest``: the smallest is best.
    - For the interval of the choice each draw picks its own best. The largest of several noisy
      values lies above the largest of the true ones, and in a draw by as much again; so from the
      percentiles is taken twice what picking gains in the draws, on average, over keeping the
      sample's best.
    - Simulated with 40 cases it holds the true difference in 84 % where thirteen methods are
      equally good and in 92 % where one is better; plain percentiles in 48 and 94 %, the interval
      with the method held fixed in 81 and 94 %.
    - ``ValueError`` for other shapes, no method, or values that are not finite.
    """
    sign = -1.0 if lowest else 1.0
    each, other = sign * numbers("values", values), sign * numbers("reference", reference, n_dim=0)
    drawn = sign * numbers("draws", draws, n_dim=2, missing=True)
    again = sign * numbers("reference_draws", reference_draws, missing=True)
    if not len(each) or drawn.shape != (*each.shape, *again.shape):
        wanted = "values must be (M,) with M at least 1, draws (M, B), reference_draws (B,)"
        raise ValueError(f"{wanted}; received {each.shape}, {drawn.shape} and {again.shape}")
    level = tied(each)
    which, *equals = (int(i) for i in np.flatnonzero(level == level.max()))
    gaps = drawn[which] - again
    gained = drawn.max(axis=0) - drawn[which]  # NaN where any method has none
    gain = 0.0 if np.isnan(gained).all() else float(np.nanmean(gained))
    held = interval(gaps, case_ids, test=True)
    free = interval(gaps + gained - 2 * gain, case_ids)
    ends = [(-x["high"], -x["low"]) if lowest else (x["low"], x["high"]) for x in (held, free)]
    share = float(chosen_in(drawn)[which]) if enough_cases(case_ids) else NAN
    difference = sign * float(each[which] - other)
    told = held["p"], held["standard_error"]
    return Best(which, tuple(equals), share, difference, *ends[0], *told, *ends[1], held["missing"])


def chosen_in(draws: ArrayLike, lowest: bool = False) -> np.ndarray:
    """The share of draws (M, B) in which each of M methods is best, (M,); equals share a draw.

    A draw in which a method has no value (NaN) does not count; NaN where none counts.
    """
    drawn = numbers("draws", draws, n_dim=2, missing=True)
    if not len(drawn):
        raise ValueError(f"draws must be (M, B) with M at least 1; received {drawn.shape}")
    known = (-drawn if lowest else drawn)[:, ~np.isnan(drawn).any(axis=0)]
    if not known.shape[1]:
        return np.full(len(known), np.nan)
    level = tied(known.T).T
    first = level == level.max(axis=0)
    return (first / first.sum(axis=0)).mean(axis=1)
