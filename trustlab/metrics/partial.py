"""Does a confidence know more than how much was told?

Its rank correlation with correctness, level and length taken out. Accuracy rises with information,
so that a confidence which merely counts what it was told tells right answers from wrong. The
partial rank correlation takes that out: confidence and length become ranks, from ranks and
correctness the mean of each level is taken, and then what is linear in the ranks of length. What is
left of the two is correlated. Ranks are made once, in the sample, so that a weighting of the
answers weighs the same numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from trustlab.metrics.discrimination import check_pair, check_weights
from trustlab.metrics.ties import numbers

NOTHING_LEFT = 1e-9
"""A share of the sum of squares below this is rounding."""


def partial_spearman(
    correct: ArrayLike, confidence: ArrayLike, level: ArrayLike, others: ArrayLike | None = None
) -> float:
    """Rank correlation of ``confidence`` and ``correct`` given ``level`` (and ``others``).

    It lies in [-1, 1]. ``correct`` (n,) holds 0 or 1, ``confidence`` (n,) finite numbers, ``level``
    (n,) categories of any kind, ``others`` (n,) or (n, k) finite numbers, such as how many words
    were shown. Ties have their mean rank. One level for all and no others gives Spearman's rho. NaN
    where nothing of the confidence or of correctness is left: a confidence that the level (and the
    others) fixes, levels of one class, no rows. Raises ``ValueError`` on other shapes or values.
    """
    ones = np.ones((1, np.size(correct)))
    return float(partial_spearman_weighted(correct, confidence, level, ones, others)[0])


def partial_spearman_weighted(
    correct: ArrayLike,
    confidence: ArrayLike,
    level: ArrayLike,
    weights: ArrayLike,
    others: ArrayLike | None = None,
) -> np.ndarray:
    """:func:`partial_spearman` under each of B weightings (B, n) of the same answers, shape (B,).

    ``weights`` are non-negative, such as how often each answer is in a bootstrap draw; fastest when
    ``weights.T`` is C-contiguous. A weighting that leaves nothing of either gives NaN.
    """
    hit, score = check_pair(correct, confidence)
    weight = check_weights(weights, len(hit))
    group = _levels(level, len(hit))
    columns = np.column_stack([score, hit, *_columns(others, len(hit))])
    if len(hit) == 0:
        return np.full(len(weight), np.nan)
    ranks = rankdata(columns, axis=0)
    ranks = ranks - ranks.mean(axis=0)
    whole = _squares(ranks, np.zeros(len(hit), int), weight)
    within = _squares(ranks, group, weight)
    least = NOTHING_LEFT * np.einsum("bkk->bk", whole)
    return _correlation(within, least)


def _squares(ranks: np.ndarray, group: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Sums of squares and products (B, k, k) of the columns (n, k).

    Of each is taken off its weighted mean in its group.
    """
    k = ranks.shape[1]
    total = np.zeros((len(weight), k, k))
    for g in range(group.max() + 1):
        at = group == g
        mine = ranks[at] - ranks[at].mean(axis=0)
        drawn = weight.T[at].T.astype(np.float64)
        mass = drawn.sum(axis=1)
        sums = drawn @ mine
        products = (
            drawn @ (mine[:, :, None] * mine[:, None, :]).reshape(len(mine), k * k)
        ).reshape(-1, k, k)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(mass[:, None] > 0, sums / mass[:, None], 0)
        total += products - sums[:, :, None] * means[:, None, :]
    return total


def _correlation(squares: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Of the first two columns, the others taken out one by one where something of them is left.

    (B, k, k) -> (B,).
    """
    left = squares
    for j in range(2, squares.shape[1]):
        column, size = left[:, :, j], left[:, j, j]
        varies = size > least[:, j]
        slope = column / np.where(varies, size, np.inf)[:, None]
        left = left - slope[:, :, None] * column[:, None, :]
    size = np.einsum("bkk->bk", left)[:, :2]
    known = (size > least[:, :2]).all(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = left[:, 0, 1] / np.sqrt(size.prod(axis=1))
    return np.where(known, np.clip(found, -1, 1), np.nan)


def _columns(others: ArrayLike | None, n: int) -> np.ndarray:
    """The others as rows, (k, n)."""
    if others is None:
        return np.empty((0, n))
    found = numbers("others", others, n_dim=max(np.ndim(others), 1))
    if found.ndim > 2 or len(found) != n:
        raise ValueError(f"others must be ({n},) or ({n}, k); received {found.shape}")
    return found.reshape(n, -1).T if found.size else np.empty((0, n))


def _levels(level: ArrayLike, n: int) -> np.ndarray:
    found = np.asarray(level)
    if found.shape != (n,):
        raise ValueError(f"level must have shape ({n},); received {found.shape}")
    return np.unique(found, return_inverse=True)[1]
