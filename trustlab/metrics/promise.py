"""Finds a threshold with a promise: the risk among the answers given is at most so large.

The risk is the share of wrong answers among those given. Fixed-sequence testing of thresholds that
are set by the confidences alone (Bauer et al. 2021, Angelopoulos et al. 2021, *Learn then Test*).
``docs/coverage.md`` has simulations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from trustlab.metrics.discrimination import check_pair
from trustlab.metrics.intervals import Span, kish_n
from trustlab.metrics.ties import same_shape, tied, width

SHARES = tuple(percent / 100 for percent in range(20, 101, 5))
"""Shares of the answers that a threshold may give, tried in this order."""
STARTS = (0.2, 0.4, 0.6, 0.8)
"""Where a sequence of tests begins; each has its part of the chance of error."""
END = 0.025
"""The chance beyond each end of a 95 % interval."""


class Threshold(NamedTuple):
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
    low = 0.0
    high = 1.0
    if hits > 0:
        low = float(betaincinv(hits, n - hits + 1, end))
    if hits < n:
        high = float(betaincinv(hits + 1, n - hits, 1 - end))
    return low, high


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
    case = np.unique(np.asarray(case_ids), return_inverse=True)[1]
    same_shape(correct=hit, case_ids=case)
    n = len(score)
    if not n:
        raise ValueError("a threshold needs at least one answer; received none")
    descending = np.sort(tied(score, product))[::-1]
    candidates = []
    for share in SHARES:
        n_least = int(np.ceil(round(share * n, 9)))
        lowest = _below_tie(descending[n_least - 1], score, product)
        reaches = score >= lowest
        counts = np.bincount(case[reaches])
        risk = 1 - hit[reaches].mean()
        candidate = Threshold(
            float(lowest), float(reaches.mean()), float(risk), kish_n(counts)
        )
        candidates.append(candidate)
    return candidates


def _below_tie(lowest: float, values: np.ndarray, product: bool) -> float:
    """As far below ``lowest`` as a near-tie of these ``values`` (n,) may lie."""
    if not product or lowest <= 0:
        return lowest - width(values)
    logarithms = np.log(values[values > 0])
    distance = width(logarithms, size=1.0)
    return lowest * np.exp(-distance)


def promised(candidates: list[Threshold], risk: float, sure: float) -> Threshold | None:
    """The lowest of :func:`thresholds` whose risk is at most ``risk`` with probability ``sure``.

    - Four sequences of tests, each at a quarter of 1 - ``sure``, go on to larger shares until one
      fails: the exact upper bound of the risk, of the effective number of cases, is above ``risk``.
    - ``None``: no threshold passes, so that the promise is kept by abstaining from all.
    """
    end = (1 - sure) / len(STARTS)
    passes = []
    for candidate in candidates:
        highest = exact_interval(candidate.risk, candidate.n_cases, end)[1]
        passes.append(highest <= risk)
    lowest = None
    for start in STARTS:
        for place in range(SHARES.index(start), len(SHARES)):
            if not passes[place]:
                break
            if lowest is None or candidates[place].share > lowest.share:
                lowest = candidates[place]
    return lowest


def cases_needed(risk: float, sure: float, observed: float = 0.0) -> int:
    """The cases behind the answers given from which :func:`promised` finds a threshold.
    ``observed``: the risk among these answers. ``ValueError`` unless it is below ``risk``, and the
    others are below 1."""
    allowed = [("risk", risk, 1.0), ("sure", sure, 1.0), ("observed", observed, risk)]
    for name, value, most in allowed:
        if not 0 <= value < most:
            raise ValueError(
                f"{name} is {value}; it must be at least 0 and below {most}"
            )
    end = (1 - sure) / len(STARTS)
    n_cases = 1
    while exact_interval(observed, n_cases, end)[1] > risk:
        n_cases += 1
    return n_cases
