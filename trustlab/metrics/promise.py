"""Finds a threshold with a promise: the risk among the answers given is at most so large.

The risk is the share of wrong answers among those given. Fixed-sequence testing of thresholds that
are set by the confidences alone (Bauer et al. 2021, Angelopoulos et al. 2021, *Learn then Test*).
``docs/coverage.md`` has simulations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from trustlab.metrics.discrimination import check_pair
from trustlab.metrics.intervals import Span, kish_n
from trustlab.metrics.ties import numbers, reaches, tied

SHARES = tuple(percent / 100 for percent in range(20, 101, 5))
"""Shares of the answers that a threshold may give, tried in this order."""
STARTS = (0.2, 0.4, 0.6, 0.8)
"""Where a sequence of tests begins; each has its part of the chance of error."""
END = 0.025
"""The chance beyond each end of a 95 % interval."""
TINY = 1e-300
"""Instead of 0 hits or misses, whose end of the interval is 0 or 1."""


@dataclass(frozen=True)
class Threshold:
    """Answers with at least this confidence are given: their share, and the risk among them.
    ``n_cases``: as many cases of equal weight as stand behind them (Kish)."""

    confidence: float
    share: float
    risk: float
    n_cases: float


def exact_interval(share: float, n: float, end: float = END) -> Span:
    """Clopper and Pearson's interval of a ``share`` of ``n`` independent answers, in [0, 1].
    ``end``: the chance beyond each end. ``n`` may be an effective number."""
    hits = share * n
    misses = n - hits
    least_hits = max(hits, TINY)
    least_misses = max(misses, TINY)
    low = betaincinv(least_hits, misses + 1, end)
    high = betaincinv(hits + 1, least_misses, 1 - end)
    return float(low), float(high)


def thresholds(
    correct: ArrayLike,
    confidence: ArrayLike,
    case_ids: ArrayLike,
    product: bool = False,
) -> list[Threshold]:
    """The threshold of each of :data:`SHARES`, by descending confidence.

    - ``correct`` (n,) contains 0 or 1, ``confidence`` (n,) finite numbers (higher is surer),
      ``case_ids`` (n,) the case of each answer, n at least 1; else ``ValueError``.
    - Near-ties are given together, so a share may be larger. ``product``: the confidence is a
      product of probabilities, whose near-ties are those of its logarithm.
    """
    hit, score = check_pair(correct, confidence)
    case = pd.factorize(np.asarray(case_ids))[0]
    descending = -tied(score, product)
    candidates = []
    for lowest in -np.quantile(descending, SHARES, method="inverted_cdf"):
        is_reached = reaches(score, lowest)
        n_cases = kish_n(np.bincount(case[is_reached]))
        risk = 1 - hit[is_reached].mean()
        candidates.append(Threshold(lowest, is_reached.mean(), risk, n_cases))
    return candidates


def promised(candidates: list[Threshold], risk: float, sure: float) -> Threshold | None:
    """The lowest of :func:`thresholds` whose risk is at most ``risk`` with probability ``sure``.

    - Four sequences of tests, each at a quarter of 1 - ``sure``, go on to larger shares until one
      fails: the exact upper bound of the risk, of the effective number of cases, is above ``risk``.
    - ``None``: no threshold passes, so that the promise is kept by abstaining from all.
    """
    end = (1 - sure) / len(STARTS)
    lowest = None
    for start in STARTS:
        for candidate in candidates[SHARES.index(start) :]:
            highest = exact_interval(candidate.risk, candidate.n_cases, end)[1]
            if highest > risk:
                break
            if lowest is None or candidate.share > lowest.share:
                lowest = candidate
    return lowest


def cases_needed(risk: float, sure: float, observed: float = 0.0) -> int:
    """The cases behind the answers given from which :func:`promised` finds a threshold.
    ``observed``: the risk among these answers, below ``risk``. ``ValueError`` unless ``risk`` and
    ``sure`` are from 0.001 to 0.999."""
    numbers("risk, and sure,", [risk, sure], low=0.001, high=0.999)
    end = (1 - sure) / len(STARTS)
    n_cases = 1
    while exact_interval(observed, n_cases, end)[1] > risk:
        n_cases += 1
    return n_cases
