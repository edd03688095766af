"""Asks what is gained by answering only when sure. Risk against coverage, and the area under it.
Coverage is the share of answers given, the surest first, risk the share of wrong ones among them.
Of equal confidences the mean over all orders is taken. Geifman & El-Yaniv 2017."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trustlab.metrics.discrimination import check_pair, cumulated, of_answers, one_class
from trustlab.metrics.estimate import ratio


def risk_at(correct: ArrayLike, confidence: ArrayLike, coverage: ArrayLike) -> np.ndarray:
    """Mean risk, over the orders of equal confidences, at each ``coverage`` (C,) in (0, 1]: (C,).
    A coverage between two whole numbers of answers counts a part of the next. NaN without rows.
    ``ValueError`` on other shapes or values."""
    hit, score = check_pair(correct, confidence)
    at = np.asarray(coverage, dtype=np.float64)
    if at.ndim != 1 or not ((at > 0) & (at <= 1)).all():
        raise ValueError(f"coverage must be (C,), above 0 and at most 1; received {coverage}")
    if not len(hit):
        return np.full(len(at), np.nan)
    reached, wrong = _curve(hit, score)
    return np.interp(at * len(hit), reached, wrong) / (at * len(hit))


def aurc(correct: ArrayLike, confidence: ArrayLike) -> float:
    """AURC, the area under the risk–coverage curve, in [0, 1], lower is better.
    The mean risk of giving the surest 1, 2, ... n answers (Geifman, Uziel & El-Yaniv 2019). NaN
    where one class is left. ``ValueError`` on other shapes or values."""
    hit, score = check_pair(correct, confidence)
    return float("nan") if one_class(hit) else _area(*_curve(hit, score))


def prediction_rejection_ratio(correct: ArrayLike, confidence: ArrayLike) -> float:
    """(error rate - AURC) / (error rate - AURC of right answers first): 0 for any order, at most 1.
    As Vashurin et al. 2025; they count the wrong among all n answers, which gives 2 AUROC - 1 for
    answers that are right or wrong. NaN and errors as :func:`aurc`."""
    hit, score = check_pair(correct, confidence)
    if one_class(hit):
        return float("nan")
    rate, best = 1 - hit.mean(), _area(*_curve(hit, hit.astype(float)))
    return float((rate - _area(*_curve(hit, score))) / (rate - best))


def _area(reached: np.ndarray, wrong: np.ndarray) -> float:
    """Expected AURC of answers given and wrong ones, before all and after each group of equals.
    After j answers of a group the expected number wrong is e + j·lost/many, e and m being wrong and
    given before it; over (m + j) this sums to lost + (e - m·lost/many)(H(m + many) - H(m))."""
    many, lost = np.diff(reached), np.diff(wrong)
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, reached[-1] + 1))])
    steps = np.diff(harmonic[reached])
    return float(np.sum(lost + (wrong[:-1] - lost / many * reached[:-1]) * steps) / reached[-1])


def _curve(hit: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Answers given and wrong ones, before all and after each group of equals: (G + 1,) twice."""
    reached, right = cumulated(hit, score)
    return reached, reached - right


RISK = ratio("wrong", kind="risk", uneven=True)
"""The share of ``wrong`` answers among those given, however many each case has of these."""
SELECTIVE = {
    "aurc": of_answers(aurc, ranked=True),
    "prediction_rejection_ratio": of_answers(prediction_rejection_ratio, ranked=True),
}
"""Metric -> its statistic, without an interval."""
