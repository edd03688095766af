"""What is gained by answering only when sure? Risk against coverage, and the area under it.

Answers enter from the surest down. Coverage is the share of answers given, risk the share of wrong
ones among those given. Equal confidences enter in no order that the method knows: every order of
them is as likely, and what is said of a curve inside such a group is the mean over all orders.
Geifman & El-Yaniv 2017.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trustlab.metrics.discrimination import check_pair, check_weights, cumulated
from trustlab.metrics.estimate import Statistic, of_answers, of_kind, part


def risk_at(
    correct: ArrayLike, confidence: ArrayLike, weights: ArrayLike, coverage: ArrayLike
) -> np.ndarray:
    """Mean risk, over the orders of equal confidences, at each ``coverage`` (C,) in (0, 1].

    Of each of B weightings: (B, C). ``weights`` (B, n) as in :func:`selective_weighted`. A coverage
    that falls on no whole number of answers counts a part of the next. NaN in a weighting without
    rows. Raises ``ValueError`` on other shapes or values.
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
      giving the surest 1, 2, ... n answers, over all orders of equal confidences. It depends on the
      error rate: compare methods on the same answers. Geifman, Uziel & El-Yaniv 2019.
    - The ratio: how far AURC gets from any order (0) to right answers first (1); negative is worse
      than any order. (error rate - AURC) / (error rate - AURC of the right order), at most 1, as
      Vashurin et al. 2025 take it from Malinin & Gales 2021. These hand a rejected answer to
      someone who knows, so that risk counts the wrong ones among all n answers; of answers that are
      right or wrong that ratio is 2 AUROC - 1, and is not given again.

    ``weights`` (B, n) are whole numbers of at least 0: how often each answer is in a bootstrap
    draw. A weighting that leaves one class gives NaN. Raises ``ValueError`` on other shapes or
    values.
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
    """Expected AURC (B,) of groups of ``many`` equal confidences, ``lost`` of them wrong.

    Both are (G, B); the groups enter in turn. After j answers of a group the expected number wrong
    is e + j·lost/many, e and m being wrong and given before it; by j = (m + j) - m the sum over j
    of that by (m + j) is lost + (e - m·lost/many)(H(m + many) - H(m)), H the harmonic numbers.
    """
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
"""Metric -> its statistic."""
