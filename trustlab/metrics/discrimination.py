"""Asks whether right answers are surer than wrong ones (AUROC, AUPRC)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trustlab.metrics.estimate import Rows, Statistic, by_jackknife, no_interval
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


@dataclass(frozen=True)
class Pairs:
    """Pairs of a right and a wrong answer within strata: how many, and how many of them are
    concordant (the right answer is surer; equal ones count half). ``n_with`` and
    ``concordant_with`` (C,) are of the pairs that each case is in."""

    n: float
    concordant: float
    n_with: np.ndarray
    concordant_with: np.ndarray

    def shares(self) -> np.ndarray:
        """The share of concordant pairs, in all and without each case, (1 + C,); NaN of none."""
        n = np.append(self.n, self.n - self.n_with)
        concordant = np.append(self.concordant, self.concordant - self.concordant_with)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(n > 0, concordant / n, np.nan)


def pairs(
    correct: ArrayLike, confidence: ArrayLike, case: np.ndarray, stratum: np.ndarray
) -> Pairs:
    """The :class:`Pairs` of answers (n,) within each ``stratum``.
    ``case`` and ``stratum`` (n,) are numbers from 0. A pair within a case counts once. Only equal
    confidences tie. ``ValueError`` on other shapes or values."""
    hit, score = check_pair(correct, confidence)
    same_shape(correct=hit, case=case, stratum=stratum)
    n_cases = int(case.max(initial=-1)) + 1
    rank = np.unique(score, return_inverse=True)[1]
    n, concordant = _pairs_of_each(hit, rank, stratum)
    n_own, own = _pairs_of_each(hit, rank, stratum * n_cases + case)  # each from both sides
    return Pairs(
        n=float(n[hit].sum()),
        concordant=float(concordant[hit].sum()),
        n_with=np.bincount(case, n - n_own / 2, n_cases),
        concordant_with=np.bincount(case, concordant - own / 2, n_cases),
    )


def _pairs_of_each(
    hit: np.ndarray, rank: np.ndarray, group: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs that each answer (n,) is in within its group, and the concordant ones, (n,) each.
    ``rank`` is that of its confidence, from 0; one sort of each outcome by group and rank."""
    n_ranks = int(rank.max(initial=0)) + 1
    first = group * n_ranks
    n, concordant = np.zeros(len(hit)), np.zeros(len(hit))
    for outcome in (True, False):
        mine, others = hit == outcome, np.sort((first + rank)[hit != outcome])
        start = np.searchsorted(others, first[mine])
        end = np.searchsorted(others, first[mine] + n_ranks)
        below = np.searchsorted(others, (first + rank)[mine])
        until = np.searchsorted(others, (first + rank)[mine], side="right")
        lower = (below + until) / 2 - start
        n[mine] = end - start
        concordant[mine] = lower if outcome else end - start - lower
    return n, concordant


def precisions(
    correct: ArrayLike, confidence: ArrayLike, case: np.ndarray, n_cases: int
) -> np.ndarray:
    """:func:`auprc` of answers (n,), in all and without each case (numbers from 0), (1 + C,).
    Only equal confidences tie. NaN where one class is left."""
    hit, score = check_pair(correct, confidence)
    if not len(hit):
        return np.full(1 + n_cases, np.nan)
    order = np.argsort(-score, kind="stable")
    hit, case, ends = hit[order], case[order], cumulated(hit, score)[0][1:] - 1
    found = []
    for some in np.array_split(np.arange(-1, n_cases), max(1, n_cases * len(hit) // PART)):
        kept = case != some[:, None]
        given = np.cumsum(kept, axis=1, dtype=float)[:, ends]
        right = np.cumsum(kept & hit, axis=1, dtype=float)[:, ends]
        precision = right / np.maximum(given, 1)
        precision[:, 1:] *= np.diff(right, axis=1)
        precision[:, :1] *= right[:, :1]
        with np.errstate(divide="ignore", invalid="ignore"):
            average = precision.sum(axis=1) / right[:, -1]
        found.append(np.where(right[:, -1] < given[:, -1], average, np.nan))
    return np.concatenate(found)


PART = 1 << 20
"""Weights of answers that are handled at once."""


def cumulated(hit: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Answers and right ones, the surest first: before all and after each group of equal
    confidences, (G + 1,) each."""
    order = np.argsort(-score, kind="stable")
    falling = score[order]
    ends = np.flatnonzero(np.append(falling[1:] != falling[:-1], np.ones(min(1, len(hit)), bool)))
    reached = np.append(0, ends + 1)
    return reached, np.append(0, np.cumsum(hit[order]))[reached]


def check_pair(correct: ArrayLike, confidence: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """``correct`` as bool (n,), ``confidence`` as float (n,), else ``ValueError``."""
    hit, score = numbers("correct", correct, only=(0, 1)), numbers("confidence", confidence)
    same_shape(correct=hit, confidence=score)
    return hit.astype(bool), score


def one_class(hit: np.ndarray) -> bool:
    """Whether all of the answers (n,) are right, or all wrong, or there are none."""
    return bool(hit.all() or not hit.any())


def _strata(rows: Rows, column: str) -> np.ndarray:
    """The stratum of each row, a place from 0: its value of the column, one for '' (n,)."""
    if not column:
        return np.zeros(len(rows), int)
    return np.unique(rows[column], return_inverse=True)[1]


def _cases(rows: Rows) -> np.ndarray:
    """The place of each row's case among those of these rows, (n,)."""
    return np.unique(rows.case, return_inverse=True)[1]


def area(column: str = "") -> Statistic:
    """AUROC: concordant pairs by pairs, of answers with the same value of ``column``.
    It gives the value, then that without each case."""

    def values(rows: Rows) -> np.ndarray:
        strata = _strata(rows, column)
        return pairs(rows["correct"], rows.ranked, _cases(rows), strata).shares()

    return Statistic(values, f"auroc{' within' if column else ''}", by_jackknife)


def average_precision(column: str = "") -> Statistic:
    """AUPRC; of several strata the mean, weighted by their pairs of a right and a wrong answer."""

    def values(rows: Rows) -> np.ndarray:
        case, strata, right = _cases(rows), _strata(rows, column), rows["correct"].astype(bool)
        total = weights = np.zeros(2 + case.max(initial=-1))
        for stratum in np.unique(strata):
            at = strata == stratum
            weight = _left(case[at & right], total.shape) * _left(case[at & ~right], total.shape)
            each = precisions(right[at], rows.ranked[at], case[at], len(total) - 1)
            total, weights = total + np.where(weight > 0, weight * each, 0), weights + weight
        with np.errstate(divide="ignore", invalid="ignore"):
            return total / weights

    return Statistic(values, f"auprc{' within' if column else ''}", by_jackknife)


def _left(case: np.ndarray, shape: tuple[int]) -> np.ndarray:
    """How many answers of these cases (n,) there are, in all and without each case, (1 + C,)."""
    return len(case) - np.bincount(case + 1, minlength=shape[0])


def of_answers(measure: Callable[[ArrayLike, ArrayLike], float], ranked: bool = False) -> Statistic:
    """A function of ``correct`` and confidences (near-ties made ties: ``ranked``), as a statistic
    that has no interval."""

    def values(rows: Rows) -> np.ndarray:
        return np.array([measure(rows["correct"], rows.ranked if ranked else rows["confidence"])])

    return Statistic(values, interval=no_interval)


RANKING = {"auroc": area(), "auprc": average_precision()}
"""Metric -> its statistic over all answers."""
STRATIFIED = {"auroc": area("level"), "auprc": average_precision("level")}
"""Metric -> the same of answers of one level. The AUROC is the chance that a right answer is surer
than a wrong one of the same level: concordant pairs by pairs, over all levels together."""


def chance(metric: str, rows: Rows, column: str = "") -> float:
    """The value of a confidence that knows nothing: 0.5 of "auroc", of "auprc" the accuracy, of
    several strata their mean as :func:`average_precision` weighs it."""
    if metric == "auroc":
        return 0.5
    hit = rows["correct"].astype(float)
    n, right = (np.bincount(_strata(rows, column), each) for each in (np.ones(len(hit)), hit))
    weight = right * (n - right)
    return float(np.sum(weight * right / n) / weight.sum())
