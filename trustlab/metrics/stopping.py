"""When to stop asking: what every threshold would have done, from recorded consultations.

- The rule: of T turns stop at the first whose confidence reaches the threshold, at the latest at
  the last (Ren et al. 2026, consultation).
- ``confidence``, ``correct`` (0 or 1, all known) and ``utterances`` (said up to and with that
  turn) are (n, T), T at least 1. Others are a ``ValueError``.
- :func:`guarantee` is beyond the paper: Learn then Test (Angelopoulos et al. 2021) with binomial
  p-values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from trustlab.metrics.significance import MOST
from trustlab.metrics.ties import numbers, reaches, same_shape, tied

GRID = tuple(np.round(np.arange(0.05, 1.0, 0.05), 2)) + (0.99,)
"""Thresholds that are tested for the guarantee: chosen before any case is seen."""


@dataclass(frozen=True)
class Frontier:
    """What each threshold brings, (G,) each, from the strictest: never stop early, to at once.

    A share of cases, a mean over cases, and the share that stopped before the last turn.
    """

    thresholds: np.ndarray
    accuracy: np.ndarray
    utterances: np.ndarray
    early: np.ndarray


@dataclass(frozen=True)
class Guarantee:
    """A threshold that keeps the error of those diagnosed early at most ``alpha``, or ``None``.

    - With chance ``1 - delta``; ``reason`` says why there is none.
    - ``n_early`` and ``n_wrong``: calibration cases that it stops early, and the wrong of them.
    """

    threshold: float | None
    alpha: float
    delta: float
    n_early: int = 0
    n_wrong: int = 0
    reason: str = ""


def stop_turns(confidence: ArrayLike, threshold: ArrayLike) -> np.ndarray:
    """The turn (from 0) at which each case stops, (n,): the first to reach ``threshold``, or last.

    ``threshold`` is one, or (n, 1) for one a case. A near-tie reaches it, NaN none.
    """
    (sure,) = _turns(confidence=confidence)
    reached = reaches(sure, threshold)
    return np.where(reached.any(axis=1), reached.argmax(axis=1), sure.shape[1] - 1)


def frontier(
    confidence: ArrayLike,
    correct: ArrayLike,
    utterances: ArrayLike,
    thresholds: Sequence[float] | None = None,
) -> Frontier:
    """Accuracy and mean utterances at every threshold, from the strictest to the laxest.

    ``thresholds``: by default infinity and every distinct confidence. ``ValueError`` without cases.
    """
    sure, right, said = _turns(confidence=confidence, correct=correct, utterances=utterances)
    if not len(sure):
        raise ValueError("n must be at least 1; received no case")
    every = [np.inf, *np.unique(tied(sure[~np.isnan(sure)]))] if thresholds is None else thresholds
    tried = np.sort(np.asarray(every, dtype=np.float64))[::-1]
    at = np.stack([stop_turns(sure, threshold) for threshold in tried])
    accuracy, said_there = (along(values, at).mean(axis=1) for values in (right, said))
    return Frontier(tried, accuracy, said_there, (at < sure.shape[1] - 1).mean(axis=1))


def along(values: ArrayLike, at: ArrayLike) -> np.ndarray:
    """Each case's value where it stops, (..., n): ``values`` (n, T), ``at`` (..., n) from 0."""
    (each,), turns = _turns(values=values), np.asarray(at)
    if turns.shape[-1:] != each.shape[:1]:
        raise ValueError(f"at must name a turn for {len(each)} cases; received {turns.shape}")
    return each[np.arange(len(each)), turns]


def best_threshold(
    confidence: ArrayLike, correct: ArrayLike, utterances: ArrayLike, price: float
) -> float:
    """The threshold of highest accuracy minus ``price`` times mean utterances.

    Of equals the one with fewer utterances; ``price``: a share of accuracy, at least 0.
    """
    numbers("price", price, n_dim=0, low=0)
    found = frontier(confidence, correct, utterances)
    # rounded, so that equals are equal; the last of them is the laxest, which asks least
    worth = np.round(found.accuracy - price * found.utterances, 12)
    return float(found.thresholds[np.flatnonzero(worth == worth.max())[-1]])


def fold_of(case_ids: ArrayLike, n_folds: int, seed: int = 0) -> np.ndarray:
    """A fold for each case, (n,) of 0 to ``n_folds - 1``, as equal as can be, random by ``seed``.

    It depends on the set of ids and not on their order. ``ValueError`` for fewer than two folds or
    ids that come twice.
    """
    ids = np.asarray(case_ids).astype(str)
    if n_folds < 2 or len(np.unique(ids)) < len(ids):
        received = f"{n_folds} and {ids[:5].tolist()} ..."
        raise ValueError(f"at least 2 folds and different ids are needed; received {received}")
    folds = np.empty(len(ids), int)
    folds[np.argsort(ids)] = np.random.default_rng(seed).permutation(len(ids)) % n_folds
    return folds


def guarantee(
    confidence: ArrayLike,
    correct: ArrayLike,
    alpha: float,
    delta: float = 0.1,
    thresholds: Sequence[float] = GRID,
) -> Guarantee:
    """The laxest threshold under which a later case diagnosed early is wrong at most at ``alpha``.

    - That holds with chance at least ``1 - delta`` over the draw of the calibration cases, **if
      those and the later cases are drawn independently from one population, asked by the same
      doctor, and ``thresholds`` was fixed before**.
    - It is one bet: of several methods or ``alpha`` the one that counts is named beforehand;
      choosing the best afterwards voids it.
    - Early is before the last turn. For each threshold, the chance of so few wrong diagnoses were
      the true error ``alpha`` is a binomial p-value; Bonferroni over the thresholds.
    - ``ValueError`` for ``alpha`` or ``delta`` outside (0, 1) or no thresholds.
    """
    if not (0 < alpha < 1 and 0 < delta < 1) or not len(thresholds):
        received = f"received {alpha}, {delta}, {list(thresholds)}"
        raise ValueError(f"alpha and delta must be in (0, 1), with a threshold; {received}")
    sure, right = _turns(confidence=confidence, correct=correct)
    most, unlikely = 0, delta / len(thresholds)
    for threshold in sorted(thresholds):
        at = stop_turns(sure, threshold)
        early = at < sure.shape[1] - 1
        n_early, n_wrong = int(early.sum()), int((1 - along(right, at))[early].sum())
        most = max(most, n_early)
        if n_early and binom.cdf(n_wrong, n_early, alpha) <= unlikely:
            return Guarantee(float(threshold), alpha, delta, n_early, n_wrong)
    needed = int(np.ceil(np.log(unlikely) / np.log1p(-alpha)))
    why = "too many errors"
    if most < needed:
        why = f"{needed} cases without an error would do, at most {most} stop early"
    return Guarantee(None, alpha, delta, reason=f"no threshold can be certified: {why}")


def early_needed(
    error: float,
    alpha: float,
    delta: float = 0.1,
    n_thresholds: int = len(GRID),
    power: float = 0.8,
) -> float:
    """How many calibration cases diagnosed early would certify a threshold: a whole number.

    With chance ``power``, by the test of :func:`guarantee`, if their true ``error`` is that. NaN
    where it is ``alpha`` or more, so that no number would do; infinite above :data:`MOST`.
    ``ValueError`` for an error outside [0, 1] or else as :func:`guarantee`.
    """
    numbers("error", error, n_dim=0, low=0, high=1)
    if not (0 < alpha < 1 and 0 < delta < 1 and 0 < power < 1) or n_thresholds < 1:
        received = f"received {alpha}, {delta}, {power}, {n_thresholds}"
        raise ValueError(f"alpha, delta and power must be in (0, 1), with a threshold; {received}")
    if error >= alpha:
        return float("nan")
    n, unlikely = np.arange(1, MOST + 1), delta / n_thresholds
    most = binom.ppf(unlikely, n, alpha)  # so many wrong are no longer unlikely enough, or just so
    most -= binom.cdf(most, n, alpha) > unlikely
    enough = np.flatnonzero(binom.cdf(most, n, error) >= power)
    return float(n[enough[0]]) if len(enough) else float("inf")


def _turns(**given: ArrayLike) -> list[np.ndarray]:
    found = {name: numbers(name, x, n_dim=2, missing=True) for name, x in given.items()}
    same_shape(**found)
    if not all(each.shape[1] for each in found.values()):
        raise ValueError(f"{' and '.join(found)} must have a turn; received none")
    if "correct" in found:
        numbers("correct", found["correct"], n_dim=2, only=(0, 1))
    return list(found.values())
