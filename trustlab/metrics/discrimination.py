"""Asks whether right answers are surer than wrong ones (AUROC, AUPRC)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from trustlab.metrics.estimate import Rows, Statistic
from trustlab.metrics.ties import ArrayPair, numbers, same_shape, tied


def auroc(correct: ArrayLike, confidence: ArrayLike) -> float:
    """Area under the ROC curve: how often a right answer is surer than a wrong one; a tie is half.
    ``correct`` (n,) contains 0 or 1, ``confidence`` (n,) finite numbers, else ``ValueError``. NaN
    if only one class is present."""
    hit, score = check_pair(correct, confidence)
    whole = np.zeros(len(hit), int)
    return float(concordance(hit, tied(score), whole, whole)[0])


def auprc(correct: ArrayLike, confidence: ArrayLike) -> float:
    """Average precision of the right answers, in (0, 1]; its chance level is the accuracy, not 0.5.
    Arguments, NaN and errors are as in :func:`auroc`."""
    hit, score = check_pair(correct, confidence)
    if not has_both_classes(hit):
        return float("nan")
    return _precision(hit, tied(score))


def _precision(hit: np.ndarray, score: np.ndarray) -> float:
    """Average precision of right (True) and wrong answers (n,), where only equal scores tie."""
    reached, right = cumulated(hit, score)
    gains = np.diff(right)
    weighted = gains * right[1:] / reached[1:]
    n_right = right[-1]
    return float(np.sum(weighted) / n_right)


def concordance(
    correct: ArrayLike, confidence: ArrayLike, case: np.ndarray, stratum: np.ndarray
) -> np.ndarray:
    """The share of concordant pairs of a right and a wrong answer, in all and without each case.

    - A pair is of one ``stratum``; concordant if the right answer is surer. Equal ones count half.
    - ``case`` and ``stratum`` (n,) are numbers from 0. The shares are (1 + cases,), NaN without a
      pair. Only equal confidences tie. ``ValueError`` on other shapes or values.
    """
    hit, score = check_pair(correct, confidence)
    same_shape(correct=hit, case=case, stratum=stratum)
    n_cases = int(case.max(initial=-1)) + 1
    rank = np.unique(score, return_inverse=True)[1]
    n_pairs, n_won = _pairs_of_each(hit, rank, stratum)
    own_pairs, own_won = _pairs_of_each(hit, rank, stratum * n_cases + case)
    lost_won = _lost_with_case(n_won, own_won, case)
    lost_pairs = _lost_with_case(n_pairs, own_pairs, case)
    won_left = n_won[hit].sum() - lost_won
    pairs_left = n_pairs[hit].sum() - lost_pairs
    with np.errstate(divide="ignore", invalid="ignore"):
        return won_left / pairs_left


def _lost_with_case(
    n_pairs: np.ndarray, n_own: np.ndarray, case: np.ndarray
) -> np.ndarray:
    """The pairs that are lost without a case: 0 for none, then of each, (1 + cases,).
    ``n_pairs`` and ``n_own`` (n,): those of each answer, in all and within its case."""
    counted_once = n_pairs - n_own / 2  # own pairs come from both sides
    return np.append(0, np.bincount(case, counted_once))


def _pairs_of_each(hit: np.ndarray, rank: np.ndarray, group: np.ndarray) -> ArrayPair:
    """The pairs that each answer (n,) is in within its group, and the concordant ones, (n,) each.
    ``rank`` is that of its confidence, from 0; one sort of each outcome by group and rank."""
    n_ranks = int(rank.max(initial=0)) + 1
    first_key = group * n_ranks
    key = first_key + rank
    n_pairs = np.zeros(len(hit))
    n_won = np.zeros(len(hit))
    for outcome in (True, False):
        is_mine = hit == outcome
        others = np.sort(key[~is_mine])
        own_first = first_key[is_mine]
        own_key = key[is_mine]
        start = np.searchsorted(others, own_first)
        end = np.searchsorted(others, own_first + n_ranks)
        below = np.searchsorted(others, own_key)
        up_to_equals = np.searchsorted(others, own_key + 1)
        n_lower = (below + up_to_equals) / 2 - start
        n_pairs[is_mine] = end - start
        n_won[is_mine] = n_lower
        if not outcome:
            n_won[is_mine] = end - start - n_lower
    return n_pairs, n_won


def cumulated(hit: np.ndarray, score: np.ndarray) -> ArrayPair:
    """Answers and right ones, the surest first: before all and after each group of equal
    confidences, (G + 1,) each."""
    group = np.unique(-score, return_inverse=True)[1]
    n_answers = np.bincount(group)
    n_right = np.bincount(group, hit)
    reached = np.append(0, np.cumsum(n_answers))
    right = np.append(0, np.cumsum(n_right))
    return reached, right


def check_pair(correct: ArrayLike, confidence: ArrayLike) -> ArrayPair:
    """``correct`` as bool (n,), ``confidence`` as float (n,), else ``ValueError``."""
    hit = numbers("correct", correct, only=(0, 1))
    score = numbers("confidence", confidence)
    same_shape(correct=hit, confidence=score)
    return hit.astype(bool), score


def has_both_classes(hit: np.ndarray) -> bool:
    """Whether there are right and wrong ones among the answers (n,)."""
    return bool(hit.any() and not hit.all())


def area(column: str = "") -> Statistic:
    """AUROC: the share of concordant pairs of answers with the same value of ``column``.
    It gives the value, then that without each case."""

    def values(rows: Rows) -> np.ndarray:
        return concordance(
            rows["correct"], rows.ranked, rows.case, _strata(rows, column)
        )

    kind = "auroc"
    if column:
        kind = "auroc within"
    return Statistic(values, kind, worth=_worth)


def _worth(rows: Rows) -> float:
    """Effective number of cases behind an AUROC, or behind a difference of two.

    It is less than the cases of the rarer outcome wherever some of these have a single slip:
    where 4 to 8 % of the cases are wholly wrong and wholly sure, intervals by these held the truth
    in as few as 0.77. Of a difference it is the geometric mean of both: two methods share the
    cases, and the cases of the rarer outcome alone held it in 0.81.
    """
    if rows.reference is None:
        return rows.rarer_worth
    return float(np.sqrt(rows.rarer_worth * rows.rarer_cases))


def average_precision(column: str = "") -> Statistic:
    """AUPRC; of several strata the mean, weighted by their pairs of a right and a wrong answer."""
    return Statistic(
        lambda rows: np.array([_mean_precision(rows, column, rows.ranked)])
    )


def _mean_precision(rows: Rows, column: str, confidence: np.ndarray) -> float:
    hit, score = check_pair(rows["correct"], confidence)
    strata = _strata(rows, column)
    total = 0.0
    n_pairs = 0
    for stratum in np.unique(strata):
        is_inside = strata == stratum
        right = hit[is_inside]
        n_right = int(right.sum())
        weight = n_right * (len(right) - n_right)
        if weight:
            total += weight * _precision(right, score[is_inside])
        n_pairs += weight
    if not n_pairs:
        return float("nan")
    return total / n_pairs


def _strata(rows: Rows, column: str) -> np.ndarray:
    """The stratum of each row, a number from 0: its value of the column, one for '' (n,)."""
    if not column:
        return np.zeros(len(rows), int)
    return np.unique(rows[column], return_inverse=True)[1]


def of_answers(
    measure: Callable[[ArrayLike, ArrayLike], float], near_ties: bool = False
) -> Statistic:
    """A function of ``correct`` and confidences (``near_ties``: made ties), as a statistic
    that has no interval."""

    def values(rows: Rows) -> np.ndarray:
        confidence = rows["confidence"]
        if near_ties:
            confidence = rows.ranked
        return np.array([measure(rows["correct"], confidence)])

    return Statistic(values)


RANKING = {"auroc": area(), "auprc": average_precision()}
"""Metric -> its statistic over all answers."""
STRATIFIED = {"auroc": area("level"), "auprc": average_precision("level")}
"""Metric -> its statistic over pairs of answers of one level. The AUROC is the chance that a right
answer is surer than a wrong one of the same level: concordant pairs by pairs, over all levels
together."""


def chance(metric: str, rows: Rows, column: str = "") -> float:
    """What a constant confidence gives: 0.5 for "auroc"; for "auprc" the accuracy, or its mean over
    several strata."""
    if metric == "auroc":
        return 0.5
    return _mean_precision(rows, column, np.zeros(len(rows)))
