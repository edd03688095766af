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
from trustlab.metrics.intervals import kish_n
from trustlab.metrics.ties import numbers, tied

SHARES = tuple(percent / 100 for percent in range(20, 101, 5))
"""Shares of the answers that a threshold may give, tried in this order."""
STARTS = (0.2, 0.4, 0.6, 0.8)
"""Where a sequence of tests begins; each has its part of the chance of error."""
TINY = 1e-300
"""Instead of 0 right answers, where the bound is 1."""


@dataclass(frozen=True)
class Threshold:
    """Answers with at least this confidence are given: their share, and the risk among them.
    ``n_cases``: as many cases of equal weight as stand behind them (Kish)."""

    confidence: float
    share: float
    risk: float
    n_cases: float


def highest_risk(risk: float, n_cases: float, end: float) -> float:
    """The upper bound of the ``risk`` seen in ``n_cases`` independent answers, exceeded with
    probability ``end`` at most (Clopper and Pearson); ``n_cases`` may be an effective number."""
    n_wrong = risk * n_cases
    n_right = max(n_cases - n_wrong, TINY)
    return float(betaincinv(n_wrong + 1, n_right, 1 - end))


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
    ranked = tied(score, product)
    candidates = []
    for lowest in -np.quantile(-ranked, SHARES, method="inverted_cdf"):
        is_reached = ranked >= lowest
        n_cases = kish_n(np.bincount(case[is_reached]))
        risk = 1 - hit[is_reached].mean()
        candidates.append(Threshold(lowest, is_reached.mean(), risk, n_cases))
    return candidates


def promised(candidates: list[Threshold], risk: float, sure: float) -> Threshold | None:
    """The lowest of :func:`thresholds` whose risk is at most ``risk`` with probability ``sure``.

    - Four sequences of tests, each at a quarter of 1 - ``sure``, go on to larger shares until one
      fails: its :func:`highest_risk` is above ``risk``.
    - ``None``: no threshold passes, so that the promise is kept by abstaining from all.
    """
    end = (1 - sure) / len(STARTS)
    passed = []
    for start in STARTS:
        for candidate in candidates[SHARES.index(start) :]:
            if highest_risk(candidate.risk, candidate.n_cases, end) > risk:
                break
            passed.append(candidate)
    return max(passed, key=lambda candidate: candidate.share, default=None)


def cases_needed(risk: float, sure: float, observed: float = 0.0) -> int:
    """The cases behind the answers given from which :func:`promised` finds a threshold.
    ``observed``: the risk among these answers, below ``risk``. ``ValueError`` unless ``risk`` and
    ``sure`` are from 0.001 to 0.999."""
    numbers("risk, and sure,", [risk, sure], low=0.001, high=0.999)
    end = (1 - sure) / len(STARTS)
    n_cases = 1
    while highest_risk(observed, n_cases, end) > risk:
        n_cases += 1
    return n_cases
