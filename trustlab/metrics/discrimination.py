"""Asks whether right answers are surer than wrong ones (AUROC, AUPRC)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from trustlab.metrics.estimate import Rows, Statistic, of_answers, of_kind, part
from trustlab.metrics.ties import numbers, same_shape, tied


def auroc(correct: ArrayLike, confidence: ArrayLike) -> float:
    """Area under the ROC curve: how often a right answer is surer than a wrong one; a tie is half.
    ``correct`` (n,) contains 0 or 1, ``confidence`` (n,) finite numbers, else ``ValueError``. NaN
    if only one class is present."""
    from sklearn.metrics import roc_auc_score  # here, since it slows the command line's start

    hit, score = check_pair(correct, confidence)
    return float("nan") if one_class(hit) else float(roc_auc_score(hit, tied(score)))


def auprc(correct: ArrayLike, confidence: ArrayLike) -> float:
    """Average precision of the right answers, in (0, 1]; its chance level is the accuracy, not 0.5.
    Arguments, NaN and errors are as in :func:`auroc`."""
    from sklearn.metrics import average_precision_score  # here as in auroc

    hit, score = check_pair(correct, confidence)
    return float("nan") if one_class(hit) else float(average_precision_score(hit, tied(score)))


def ranking_weighted(
    correct: ArrayLike, confidence: ArrayLike, weights: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """AUROC and average precision under each of B weightings (B, n), each (B,), from one sort.
    Only equal confidences tie. NaN where a weighting leaves one class. ``ValueError`` on other
    shapes or values. Fastest when ``weights.T`` is C-contiguous and of float64."""
    hit, score = check_pair(correct, confidence)
    weight = check_weights(weights, len(hit)).astype(float, copy=False)
    (true, until), (false, wrong_until) = cumulated(hit, score, weight)
    gains = np.flatnonzero(np.diff(until)) + 1  # other groups add to neither sum
    gained, lost = np.diff(true[until[np.append(0, gains)]], axis=0), false[wrong_until[gains]]
    reached = np.maximum(true[until[gains]] + lost, np.finfo(float).tiny)  # of none, none is gained
    average = np.einsum("gb,gb->b", gained, np.divide(true[until[gains]], reached, out=reached))
    # Each gained positive is beaten by the negatives above it and by half of those it ties with.
    lost += false[wrong_until[gains - 1]]
    lost = np.einsum("gb,gb->b", gained, lost) / 2
    n_true, n_false = true[-1], false[-1]
    both = (n_true > 0) & (n_false > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        area, average = 1 - lost / (n_true * n_false), average / n_true
    return np.where(both, area, np.nan), np.where(both, average, np.nan)


def cumulated(
    hit: np.ndarray, score: np.ndarray, weight: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of right, then of wrong answers: their weights, the surest first, cumulated (1 + n, B); and
    how many of them stand before all and after each group of equal confidences, (G + 1,)."""
    order = np.argsort(-score, kind="stable")
    falling, right = score[order], hit[order]
    ends = np.flatnonzero(np.append(falling[1:] != falling[:-1], np.ones(min(1, len(hit)), bool)))
    found = []
    for kind in (right, ~right):
        total = np.zeros((np.count_nonzero(kind) + 1, len(weight)), weight.dtype)
        np.cumsum(weight.T[order[kind]], axis=0, out=total[1:])
        found.append((total, np.append(0, np.cumsum(kind)[ends])))
    return found


def check_pair(correct: ArrayLike, confidence: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """``correct`` as bool (n,), ``confidence`` as float (n,), else ``ValueError``."""
    hit, score = numbers("correct", correct, only=(0, 1)), numbers("confidence", confidence)
    same_shape(correct=hit, confidence=score)
    return hit.astype(bool), score


def check_weights(weights: ArrayLike, n: int) -> np.ndarray:
    """``weights`` as an array (B, n); ``ValueError`` unless finite and non-negative."""
    weight = np.asarray(weights)
    if weight.ndim != 2 or weight.shape[1] != n:
        raise ValueError(f"weights must have shape (B, {n}); received {weight.shape}")
    if weight.size and not (weight.min() >= 0 and np.isfinite(weight.max())):
        ends = f"{weight.min()} to {weight.max()}"
        raise ValueError(f"weights must be finite and at least 0; received {ends}")
    return weight


def one_class(hit: np.ndarray) -> bool:
    """Whether all of the answers (n,) are right, or all wrong, or there are none."""
    return bool(hit.all() or not hit.any())


_RANKED = of_answers(ranking_weighted, ranked=True)
RANKING: dict[str, tuple[Statistic, Callable[[Rows], float]]] = {
    "auroc": (of_kind("auroc", part(_RANKED, 0)), lambda rows: 0.5),
    "auprc": (of_kind("auprc", part(_RANKED, 1)), lambda rows: float(rows["correct"].mean())),
}
"""Metric -> its statistic, and what a confidence that knows nothing has."""
