"""Asks whether right answers are surer than wrong ones (AUROC, AUPRC)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from trustlab.metrics.estimate import Rows, Statistic
from trustlab.metrics.ties import numbers, same_shape, tied


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
    return float("nan") if one_class(hit) else _precision(hit, tied(score))


def _precision(hit: np.ndarray, score: np.ndarray) -> float:
    """The same of right (True) and wrong answers (n,), where only equal scores tie."""
    reached, right = cumulated(hit, score)
    return float(np.sum(np.diff(right) * right[1:] / reached[1:]) / right[-1])


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
    pairs, won = _pairs_of_each(hit, rank, stratum)
    pairs_own, won_own = _pairs_of_each(hit, rank, stratum * n_cases + case)
    with_case = [
        np.append(0, np.bincount(case, each - own / 2, n_cases))  # own pairs come from both sides
        for each, own in ((won, won_own), (pairs, pairs_own))
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        return (won[hit].sum() - with_case[0]) / (pairs[hit].sum() - with_case[1])


def _pairs_of_each(
    hit: np.ndarray, rank: np.ndarray, group: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs that each answer (n,) is in within its group, and the concordant ones, (n,) each.
    ``rank`` is that of its confidence, from 0; one sort of each outcome by group and rank."""
    n_ranks = int(rank.max(initial=0)) + 1
    first, key = group * n_ranks, group * n_ranks + rank
    pairs, won = np.zeros(len(hit)), np.zeros(len(hit))
    for outcome in (True, False):
        mine, others = hit == outcome, np.sort(key[hit != outcome])
        ends = (first, key, key + 1, first + n_ranks)  # of the group, and of equals within
        start, below, until, end = (np.searchsorted(others, at[mine]) for at in ends)
        lower = (below + until) / 2 - start
        pairs[mine] = end - start
        won[mine] = lower if outcome else end - start - lower
    return pairs, won


def cumulated(hit: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Answers and right ones, the surest first: before all and after each group of equal
    confidences, (G + 1,) each."""
    group = np.unique(-score, return_inverse=True)[1]
    reached, right = np.cumsum(np.bincount(group)), np.cumsum(np.bincount(group, hit))
    return np.append(0, reached), np.append(0, right)


def check_pair(correct: ArrayLike, confidence: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """``correct`` as bool (n,), ``confidence`` as float (n,), else ``ValueError``."""
    hit, score = numbers("correct", correct, only=(0, 1)), numbers("confidence", confidence)
    same_shape(correct=hit, confidence=score)
    return hit.astype(bool), score


def one_class(hit: np.ndarray) -> bool:
    """Whether all of the answers (n,) are right, or all wrong, or there are none."""
    return bool(hit.all() or not hit.any())


def area(column: str = "") -> Statistic:
    """AUROC: concordant pairs by pairs, of answers with the same value of ``column``.
    It gives the value, then that without each case."""

    def values(rows: Rows) -> np.ndarray:
        return concordance(rows["correct"], rows.ranked, rows.case, _strata(rows, column))

    kind = "auroc within" if column else "auroc"
    return Statistic(values, kind, worth=_worth)


def _worth(rows: Rows) -> float:
    """As how many cases the answers count behind an AUROC, or behind a difference of two.

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
    return Statistic(lambda rows: np.array([_mean_precision(rows, column, rows.ranked)]))


def _mean_precision(rows: Rows, column: str, confidence: np.ndarray) -> float:
    hit, score = check_pair(rows["correct"], confidence)
    strata, total, pairs = _strata(rows, column), 0.0, 0
    for stratum in np.unique(strata):
        right, values = hit[strata == stratum], score[strata == stratum]
        weight = int(right.sum() * (~right).sum())
        total += weight * _precision(right, values) if weight else 0.0
        pairs += weight
    return total / pairs if pairs else float("nan")


def _strata(rows: Rows, column: str) -> np.ndarray:
    """The stratum of each row, a number from 0: its value of the column, one for '' (n,)."""
    if not column:
        return np.zeros(len(rows), int)
    return np.unique(rows[column], return_inverse=True)[1]


def of_answers(measure: Callable[[ArrayLike, ArrayLike], float], ranked: bool = False) -> Statistic:
    """A function of ``correct`` and confidences (near-ties made ties: ``ranked``), as a statistic
    that has no interval."""

    def values(rows: Rows) -> np.ndarray:
        return np.array([measure(rows["correct"], rows.ranked if ranked else rows["confidence"])])

    return Statistic(values)


RANKING = {"auroc": area(), "auprc": average_precision()}
"""Metric -> its statistic over all answers."""
STRATIFIED = {"auroc": area("level"), "auprc": average_precision("level")}
"""Metric -> the same of answers of one level. The AUROC is the chance that a right answer is surer
than a wrong one of the same level: concordant pairs by pairs, over all levels together."""


def chance(metric: str, rows: Rows, column: str = "") -> float:
    """The value of a confidence that is the same of all: 0.5 of "auroc", of "auprc" the accuracy,
    or the mean of that of several strata."""
    return 0.5 if metric == "auroc" else _mean_precision(rows, column, np.zeros(len(rows)))
