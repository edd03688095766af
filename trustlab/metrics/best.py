"""The best of several against a reference: chosen on the same cases, which flatters it; so also with the choice drawn anew."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trustlab.metrics.estimate import bounded_interval, enough_cases, interval
from trustlab.metrics.ties import tied


@dataclass(frozen=True)
class Best:
    """The best of M methods, and how far it is from a reference.

    ``which`` is its place among the M (the first of equals; ``tied`` are the others), ``chosen_in`` the share of draws in which
    this very one would be best, ties shared. ``difference`` is best minus reference, ``low`` and ``high`` its 95 % interval,
    ``p`` two-sided and ``standard_error``, all with this method held fixed, as if it had been named beforehand. ``low_chosen``
    and ``high_chosen`` are of best minus reference whoever is best. NaN where there is none; ``missing`` says why.
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
    """The best of M methods with ``values`` (M,) and bootstrap ``draws`` (M, B), against one with value and draws (B,).

    All are of the same cases in the same draws; ``case_ids`` (n,) names them. ``lowest``: the smallest is best. For the interval
    of the choice each draw picks its own best. The largest of several noisy values lies above the largest of the true ones, and
    in a draw by as much again; so from the percentiles is taken twice what picking gains in the draws, on average, over keeping
    the sample's best. Simulated with 40 cases the interval holds the true difference in 84 % where thirteen methods are
    equally good and in 92 % where one is better; plain percentiles do in 48 and 94 %, the interval with the method held fixed
    in 81 and 94 %. Where the same method is always picked both intervals are the same. Raises ``ValueError`` for other shapes,
    no method, or values that are not finite.
    """
    sign = -1.0 if lowest else 1.0
    each, drawn = (
        sign * np.asarray(values, dtype=np.float64),
        sign * np.asarray(draws, dtype=np.float64),
    )
    other, again = sign * float(reference), sign * np.asarray(reference_draws, dtype=np.float64)
    if (
        each.ndim != 1
        or not len(each)
        or drawn.shape != (len(each), *again.shape)
        or again.ndim != 1
    ):
        received = f"{each.shape}, {drawn.shape} and {again.shape}"
        raise ValueError(
            f"values must be (M,) with M at least 1, draws (M, B), reference_draws (B,); received {received}"
        )
    if not (np.isfinite(each).all() and np.isfinite(other)):
        raise ValueError(f"values and reference must be finite; received {values} and {reference}")
    level = tied(each)
    which, *equals = (int(i) for i in np.flatnonzero(level == level.max()))
    gaps = drawn[which] - again
    found = interval(gaps, np.asarray(case_ids), test=True)
    held = found["low"], found["high"]
    difference = each[which] - other
    gained = drawn.max(axis=0) - drawn[which]  # NaN where any method has none
    gain = 0.0 if np.isnan(gained).all() else float(np.nanmean(gained))
    first, last, _ = bounded_interval(gaps + gained - 2 * gain, case_ids)
    turned = [(-b, -a) if lowest else (a, b) for a, b in (held, (first, last))]
    share = float(chosen_in(drawn)[which]) if enough_cases(case_ids) else float("nan")
    told = found["p"], found["standard_error"]
    return Best(
        which,
        tuple(equals),
        share,
        sign * difference,
        *turned[0],
        *told,
        *turned[1],
        found["missing"],
    )


def chosen_in(draws: ArrayLike, lowest: bool = False) -> np.ndarray:
    """The share of draws (M, B) in which each of M methods has the largest value (``lowest``: smallest), (M,); sums to 1.

    Equals share a draw; a draw in which a method has no value (NaN) does not count. NaN without a draw that counts.
    """
    drawn = np.asarray(draws, dtype=np.float64)
    if drawn.ndim != 2 or not len(drawn):
        raise ValueError(f"draws must be (M, B) with M at least 1; received {drawn.shape}")
    known = (-drawn if lowest else drawn)[:, ~np.isnan(drawn).any(axis=0)]
    if not known.shape[1]:
        return np.full(len(known), np.nan)
    level = tied(known.T).T
    first = level == level.max(axis=0)
    return (first / first.sum(axis=0)).mean(axis=1)
