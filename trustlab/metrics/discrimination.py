"""Does a higher confidence go with a correct answer? AUROC and AUPRC.

Of one sample, or of many weightings of it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import average_precision_score, roc_auc_score

from trustlab.metrics.estimate import Rows, Statistic, of_answers, part
from trustlab.metrics.ties import numbers, same_shape, tied


def auroc(correct: ArrayLike, confidence: ArrayLike) -> float:
    """Area under the ROC curve: how often a right answer is surer than a wrong one, ties half.

    ``correct`` (n,) holds 0 or 1, ``confidence`` (n,) finite numbers. NaN when only one class is
    present. ``ValueError`` on other shapes or values.
    """
    hit, score = check_pair(correct, confidence)
    return float("nan") if one_class(hit) else float(roc_auc_score(hit, score))


def auprc(correct: ArrayLike, confidence: ArrayLike) -> float:
    """Average precision, in (0, 1], positive = correct; its chance level is the accuracy, not 0.5.

    Arguments and errors as in :func:`auroc`. NaN when only one class is present.
    """
    hit, score = check_pair(correct, confidence)
    return float("nan") if one_class(hit) else float(average_precision_score(hit, score))


def auroc_weighted(correct: ArrayLike, confidence: ArrayLike, weights: ArrayLike) -> np.ndarray:
    """AUROC under each of B weightings of the same n answers, shape (B,).

    ``weights`` (B, n) are non-negative, such as how often each answer is in a bootstrap draw. A
    weighting that leaves one class gives NaN. Raises ``ValueError`` on other shapes or values.
    """
    return ranking_weighted(correct, confidence, weights)[0]


def auprc_weighted(correct: ArrayLike, confidence: ArrayLike, weights: ArrayLike) -> np.ndarray:
    """Average precision under each of B weightings of the same n answers, shape (B,).

    As :func:`auroc_weighted`.
    """
    return ranking_weighted(correct, confidence, weights)[1]


def ranking_weighted(
    correct: ArrayLike, confidence: ArrayLike, weights: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """AUROC and average precision together, each (B,), from one sort.

    Fastest when ``weights.T`` is C-contiguous.
    """
    hit, score = check_pair(correct, confidence)
    weight = check_weights(weights, len(hit))
    if len(hit) == 0:
        return np.full(len(weight), np.nan), np.full(len(weight), np.nan)
    order = np.argsort(-score, kind="stable")
    # Curves only have points where the confidence changes: equal confidences enter together.
    falling = score[order]
    ends = np.flatnonzero(np.append(falling[1:] != falling[:-1], True))
    ordered = weight.T[order].astype(np.float64)
    reached = np.cumsum(ordered, axis=0)[ends]
    ordered *= hit[order, None]
    true = np.cumsum(ordered, axis=0)[ends]
    false = reached - true
    gained = np.diff(true, axis=0, prepend=0.0)
    n_true, n_false = true[-1], false[-1].copy()
    precision = np.divide(true, reached, out=np.zeros_like(true), where=reached > 0)
    average = np.einsum("gb,gb->b", gained, precision)
    # Each gained positive is beaten by the negatives above it and by half of those it ties with.
    false[1:] += false[:-1].copy()
    lost = np.einsum("gb,gb->b", gained, false) / 2
    both = (n_true > 0) & (n_false > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        area, average = 1 - lost / (n_true * n_false), average / n_true
    return np.where(both, area, np.nan), np.where(both, average, np.nan)


def check_pair(correct: ArrayLike, confidence: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """``correct`` as bool (n,) and ``confidence`` as float (n,), its near-ties made ties.

    What everything that ranks begins with. ``ValueError`` unless 0/1 and finite.
    """
    hit, score = numbers("correct", correct, only=(0, 1)), numbers("confidence", confidence)
    same_shape(correct=hit, confidence=score)
    return hit.astype(bool), tied(score)


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


_RANKING = of_answers(ranking_weighted)
RANKING: dict[str, tuple[Statistic, Callable[[Rows], float]]] = {
    "auroc": (part(_RANKING, 0), lambda rows: 0.5),
    "auprc": (part(_RANKING, 1), lambda rows: float(rows["correct"].mean())),
}
"""Metric -> its statistic, and what a confidence that knows nothing has."""
