"""Asks what is gained by answering only when sure. Risk against coverage, and the area under it.
Coverage is the share of answers given, the surest first, risk the share of wrong ones among them.
Of equal confidences the mean over all orders is taken. Geifman & El-Yaniv 2017."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trustlab.metrics.discrimination import (
    check_pair,
    cumulated,
    has_both_classes,
    of_answers,
)
from trustlab.metrics.estimate import ratio
from trustlab.metrics.ties import ArrayPair


def risk_at(
    correct: ArrayLike, confidence: ArrayLike, coverage: ArrayLike
) -> np.ndarray:
    """Mean risk, over the orders of equal confidences, at each ``coverage`` (C,) in (0, 1]: (C,).
    A coverage between two whole numbers of answers counts a part of the next. NaN without rows.
    ``ValueError`` on other shapes or values."""
    hit, score = check_pair(correct, confidence)
    at = np.asarray(coverage, dtype=np.float64)
    is_coverage = (at > 0) & (at <= 1)
    if at.ndim != 1 or not is_coverage.all():
        raise ValueError(
            f"coverage must be (C,), above 0 and at most 1; received {coverage}"
        )
    if not len(hit):
        return np.full(len(at), np.nan)
    reached, wrong = _curve(hit, score)
    n_answers = at * len(hit)
    return np.interp(n_answers, reached, wrong) / n_answers


def aurc(correct: ArrayLike, confidence: ArrayLike) -> float:
    """AURC, the area under the risk–coverage curve, in [0, 1], lower is better.
    The mean risk of giving the surest 1, 2, ... n answers (Geifman, Uziel & El-Yaniv 2019). NaN
    where one class is left. ``ValueError`` on other shapes or values."""
    hit, score = check_pair(correct, confidence)
    if not has_both_classes(hit):
        return float("nan")
    return _area(hit, score)


def prediction_rejection_ratio(correct: ArrayLike, confidence: ArrayLike) -> float:
    """(error rate - AURC) / (error rate - AURC of right answers first): 0 for any order, at most 1.
    As Vashurin et al. 2025; they count the wrong among all n answers, which gives 2 AUROC - 1 for
    answers that are right or wrong. NaN and errors as :func:`aurc`."""
    hit, score = check_pair(correct, confidence)
    if not has_both_classes(hit):
        return float("nan")
    rate = 1 - hit.mean()
    best = _area(hit, hit.astype(float))
    area = _area(hit, score)
    return float((rate - area) / (rate - best))


def _area(hit: np.ndarray, score: np.ndarray) -> float:
    """Expected AURC, over the orders of equal confidences.
    After j answers of a group the expected number wrong is e + j·lost/many, e and m being wrong and
    given before it; over (m + j) this sums to lost + (e - m·lost/many)(H(m + many) - H(m))."""
    reached, wrong = _curve(hit, score)
    many = np.diff(reached)
    lost = np.diff(wrong)
    n_answers = reached[-1]
    inverses = 1 / np.arange(1, n_answers + 1)
    harmonic = np.append(0.0, np.cumsum(inverses))
    steps = np.diff(harmonic[reached])
    rates = lost / many
    starts = wrong[:-1] - rates * reached[:-1]
    risks = lost + starts * steps
    return float(np.sum(risks) / n_answers)


def _curve(hit: np.ndarray, score: np.ndarray) -> ArrayPair:
    """Answers given and wrong ones, before all and after each group of equals: (G + 1,) twice."""
    reached, right = cumulated(hit, score)
    return reached, reached - right


RISK = ratio("wrong", kind="risk", uneven=True)
"""The share of ``wrong`` answers among those given, however many each case has of these."""
SELECTIVE = {
    "aurc": of_answers(aurc, near_ties=True),
    "prediction_rejection_ratio": of_answers(
        prediction_rejection_ratio, near_ties=True
    ),
}
"""Metric -> its statistic, without an interval."""
