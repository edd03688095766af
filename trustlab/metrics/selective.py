"""Asks what is gained by answering only when sure. Risk against coverage, and the area under it.
Coverage is the share of answers given, the surest first, risk the share of wrong ones among them.
Of equal confidences the mean over all orders is taken. Geifman & El-Yaniv 2017."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trustlab.metrics.discrimination import check_pair, check_weights, cumulated
from trustlab.metrics.estimate import Statistic, of_answers, of_kind, part


def risk_at(
    correct: ArrayLike, confidence: ArrayLike, weights: ArrayLike, coverage: ArrayLike
) -> np.ndarray:
    """Mean risk, over the orders of equal confidences, at each ``coverage`` (C,) in (0, 1]: (B, C).
    ``weights`` (B, n) as in :func:`selective_weighted`. A coverage between two whole numbers of
    answers counts a part of the next. NaN without rows. ``ValueError`` on other shapes or values.
    """
    hit, score = check_pair(correct, confidence)
    at = np.asarray(coverage, dtype=np.float64)
    if at.ndim != 1 or not ((at > 0) & (at <= 1)).all():
        raise ValueError(f"coverage must be (C,), above 0 and at most 1; received {coverage}")
    reached, wrong = _curves(hit, score, _whole(weights, len(hit)))
    found = np.full((reached.shape[1], len(at)), np.nan)
    for b in np.flatnonzero(reached[-1]):
        given = at * reached[-1, b]
        found[b] = np.interp(given, reached[:, b], wrong[:, b]) / given
    return found


def selective_weighted(
    correct: ArrayLike, confidence: ArrayLike, weights: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """AURC and prediction-rejection ratio together, each (B,), from one sort.

    - AURC, the area under the risk–coverage curve, in [0, 1], lower is better: the mean risk of
      giving the surest 1, 2, ... n answers. Geifman, Uziel & El-Yaniv 2019.
    - The ratio (error rate - AURC) / (error rate - AURC of right answers first): 0 for any order,
      at most 1. As Vashurin et al. 2025; they count the wrong among all n answers, which gives 2
      AUROC - 1 for answers that are right or wrong.
    - ``weights`` (B, n): how often each answer is in a draw, whole; NaN where one class is left.
      ``ValueError`` on other shapes or values.
    """
    hit, score = check_pair(correct, confidence)
    reached, wrong = _curves(hit, score, _whole(weights, len(hit)))
    n, n_wrong = reached[-1], wrong[-1]
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, (n.max() if len(n) else 0) + 1))])
    both = (n_wrong > 0) & (n_wrong < n)
    with np.errstate(divide="ignore", invalid="ignore"):
        area = _area(np.diff(reached, axis=0), np.diff(wrong, axis=0), reached, wrong, harmonic)
        n_right = n - n_wrong
        best = (n_wrong - n_right * (harmonic[n] - harmonic[n_right])) / n
        rate = n_wrong / n
        return np.where(both, area, np.nan), np.where(both, (rate - area) / (rate - best), np.nan)


def _area(
    many: np.ndarray, lost: np.ndarray, reached: np.ndarray, wrong: np.ndarray, harmonic: np.ndarray
) -> np.ndarray:
    """Expected AURC (B,) of groups of ``many`` equal confidences, ``lost`` of them wrong, (G, B)
    each.
    After j answers of a group the expected number wrong is e + j·lost/many, e and m being wrong and
    given before it; over (m + j) this sums to lost + (e - m·lost/many)(H(m + many) - H(m))."""
    share = lost / np.maximum(many, 1)
    before, until = reached[:-1], reached[1:]
    steps = harmonic[until] - harmonic[before]
    return (lost + (wrong[:-1] - share * before) * steps).sum(axis=0) / reached[-1]


def _curves(
    hit: np.ndarray, score: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Answers given and wrong ones, before all and after each group of equals: (G + 1, B) twice."""
    right, wrong = (total[until] for total, until in cumulated(hit, score, weight))
    return right + wrong, wrong


def _whole(weights: ArrayLike, n: int) -> np.ndarray:
    weight = check_weights(weights, n)
    if not np.array_equal(weight, np.floor(weight)):
        part = weight[weight != np.floor(weight)][0]
        raise ValueError(f"weights must be whole numbers; received {part}")
    return weight.astype(np.int64)


_AREA = of_answers(selective_weighted, ranked=True)
SELECTIVE: dict[str, Statistic] = {
    "aurc": of_kind("aurc", part(_AREA, 0)),
    "prediction_rejection_ratio": of_kind("prediction_rejection_ratio", part(_AREA, 1)),
}
