"""What would a metric be, at worst and at best, if the values that are missing were had?

A method that is silent where it would have been wrong looks better than it is. Nothing is assumed
of the missing: every way of filling them in is allowed, and the two ends over all of them are given
(Manski 2003). An answer whose correctness is not known (NaN in ``correct``) may be right or wrong,
and its confidence counts as missing too, since the project leaves it out of everything. A missing
confidence may take any value: for AUROC and AUPRC any place in the order, for the others any
probability. The ends are reached, one way of filling in at a time: no single one need reach those
of two metrics. They are no interval, since they say nothing of other cases; with nothing missing
both are the metric itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trustlab.metrics.calibration import TOLERANCE
from trustlab.metrics.discrimination import auroc
from trustlab.metrics.ties import numbers, same_shape, tied


@dataclass(frozen=True)
class Bounds:
    """The ends of a metric over every way of filling in what is missing.

    ``worst`` is the less welcome one.
    """

    worst: float
    best: float


NONE = Bounds(float("nan"), float("nan"))


def accuracy_bounds(correct: ArrayLike) -> Bounds:
    """Share of right answers if all unknown ones were wrong, and if all were right.

    ``correct`` (n,) holds 0 or 1, NaN where unknown. NaN without rows. Raises ``ValueError`` on
    other shapes or values.
    """
    hit = _grades(correct)
    if len(hit) == 0:
        return NONE
    return Bounds(float(np.nan_to_num(hit, nan=0).mean()), float(np.nan_to_num(hit, nan=1).mean()))


def mean_confidence_bounds(confidence: ArrayLike) -> Bounds:
    """Mean of probabilities (n,), NaN where missing, if all missing ones were 0, and if 1.

    The lowest and the highest. NaN without rows. Raises ``ValueError`` on other shapes or
    values outside [0, 1].
    """
    prob = _probabilities(confidence)
    if len(prob) == 0:
        return NONE
    return Bounds(
        float(np.nan_to_num(prob, nan=0).mean()), float(np.nan_to_num(prob, nan=1).mean())
    )


def brier_bounds(correct: ArrayLike, confidence: ArrayLike) -> Bounds:
    """Brier score if each missing answer cost 1 (sure and wrong), and if none cost anything.

    Worst is the higher. ``correct`` (n,) 0, 1 or NaN where unknown; ``confidence`` (n,)
    probabilities or NaN where missing. NaN without rows. Raises ``ValueError`` on other shapes or
    values.
    """
    hit, prob = _checked(correct, _probabilities(confidence))
    if len(hit) == 0:
        return NONE
    cost = (prob - hit) ** 2
    return Bounds(
        float(np.nan_to_num(cost, nan=1).mean()), float(np.nan_to_num(cost, nan=0).mean())
    )


def auroc_bounds(correct: ArrayLike, confidence: ArrayLike) -> Bounds:
    """AUROC with every missing confidence in the worst place, and in the best.

    At worst right answers stand last and wrong ones first. ``correct`` (n,) 0, 1 or NaN where
    unknown; ``confidence`` (n,) finite or NaN where missing. Every number of the unknown answers is
    tried as right. NaN where no filling in has both classes. Raises ``ValueError`` on other shapes
    or values.
    """
    hit, score = _checked(correct, confidence)
    known = ~np.isnan(score)
    right, wrong = int(np.sum(hit[known] == 1)), int(np.sum(hit[known] == 0))
    won = auroc(hit[known], score[known]) * right * wrong if right and wrong else 0.0
    all_right, all_wrong = _splits(hit)
    pairs = (all_right * all_wrong).astype(np.float64)
    if not (pairs > 0).any():
        return NONE
    pairs = pairs[pairs > 0]
    # Only the pairs of known answers are settled; of the others all are lost, or all are won.
    return Bounds(float((won / pairs).min()), float((1 - (right * wrong - won) / pairs).max()))


def auprc_bounds(correct: ArrayLike, confidence: ArrayLike) -> Bounds:
    """Average precision with every missing confidence in the worst place, and in the best.

    Arguments as in :func:`auroc_bounds`. At best missing right answers come first. At worst missing
    wrong ones do, while right ones come last, or just above a group of equal confidences that holds
    several right ones: average precision credits such a group as a whole, at its lower end.
    """
    hit, score = _checked(correct, confidence)
    known = ~np.isnan(score)
    gained, reached = _groups(hit[known] == 1, score[known])
    all_right, all_wrong = _splits(hit)
    valid = (all_right > 0) & (all_wrong > 0)
    if not valid.any():
        return NONE
    true = np.cumsum(gained)
    # Right and wrong answers that are missing, in each split.
    above = (all_right - true[-1] if len(true) else all_right)[valid, None]
    first = (all_wrong - (reached[-1] - true[-1]) if len(true) else all_wrong)[valid, None]
    n_right = all_right[valid]
    best = (above[:, 0] + (gained * (true + above) / (reached + above)).sum(axis=1)) / n_right
    worst = _lowest_precision(gained, reached, above, first) / n_right
    return Bounds(float(worst.min()), float(best.max()))


def _lowest_precision(
    gained: np.ndarray, reached: np.ndarray, above: np.ndarray, first: np.ndarray
) -> np.ndarray:
    """Least sum of the right answers' precisions, (S,).

    Where ``above`` missing right answers stand among the known groups. ``gained`` and ``reached``
    (G,): right answers of each group of equal confidences, and answers down to its end; ``above``
    and ``first`` (S, 1): missing right and wrong answers in each split, the wrong ones before
    everything. By dynamic programming over groups: ``least`` (S, K) is the least sum so far with k
    missing ones placed, one by one, before or between groups.
    """
    placed = np.arange(int(above.max(initial=0)) + 1)[None, :]
    least = np.zeros((len(above), placed.shape[1]))
    least[:, 1:] = np.inf  # none is placed before the first gap
    true, given = 0.0, 0.0
    ends = [*reached, reached[-1] if len(reached) else 0]
    for more, until in zip([*gained, 0], ends, strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(placed > 0, (true + placed) / (first + given + placed), 0.0)
            run = np.cumsum(each, axis=1)  # of the first k, were all placed in this gap
            least = run + np.minimum.accumulate(least - run, axis=1)
            true, given = true + more, float(until)
            if more:
                least = least + more * (true + placed) / (first + given + placed)
    return np.take_along_axis(least, above.astype(np.int64), axis=1)[:, 0]


def _groups(right: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each group of equal confidences, the highest first: right answers, answers to its end.

    (G,) twice.
    """
    _, group, counts = np.unique(-tied(score), return_inverse=True, return_counts=True)
    gained = np.bincount(group, right, len(counts))
    return gained.astype(np.float64), np.cumsum(counts).astype(np.float64)


def _splits(hit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Right and wrong answers in all, (S,) each, with 0, 1, ... all of the unknown ones right."""
    unknown = int(np.isnan(hit).sum())
    more = np.arange(unknown + 1)
    return int(np.sum(hit == 1)) + more, int(np.sum(hit == 0)) + unknown - more


def _checked(correct: ArrayLike, confidence: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """``correct`` and ``confidence`` (n,), the latter NaN where the former is."""
    hit, score = _grades(correct), numbers("confidence", confidence, missing=True)
    same_shape(correct=hit, confidence=score)
    return hit, np.where(np.isnan(hit), np.nan, score)


def _grades(correct: ArrayLike) -> np.ndarray:
    return numbers("correct", correct, only=(0, 1), missing=True)


def _probabilities(confidence: ArrayLike) -> np.ndarray:
    low, high = -TOLERANCE, 1 + TOLERANCE
    return np.clip(numbers("confidence", confidence, low=low, high=high, missing=True), 0, 1)
